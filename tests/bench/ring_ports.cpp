// SPDX-License-Identifier: BSD-3-Clause
#include "ring_ports.hpp"

#include <rte_dev.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <array>
#include <stdexcept>
#include <string>
#include <utility>

namespace weir::bench {
namespace {

constexpr unsigned kDrained = 64;

rte_ring* make_ring(const std::string& name, std::uint32_t depth) {
  rte_ring* ring = rte_ring_create(name.c_str(), depth, SOCKET_ID_ANY,
                                   RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
  if (ring == nullptr) {
    throw std::runtime_error("no memory for ring " + name);
  }
  return ring;
}

} // namespace

void FreePool::operator()(rte_mempool* pool) const {
  rte_mempool_free(pool);
}

std::uint16_t RingPorts::make_device(const std::string& name, const Port& port, rte_mempool* pool) {
  std::vector<rte_ring*> receive;
  for (const Ring& ring : port.receive) {
    receive.push_back(ring.get());
  }
  rte_ring* transmit = port.transmit.get();
  const auto queues = static_cast<std::uint16_t>(receive.size());
  const int made = rte_eth_from_rings(name.c_str(), receive.data(), queues, &transmit, 1, 0);
  if (made < 0) {
    throw std::runtime_error("no device from rings: " + name);
  }
  const auto device = static_cast<std::uint16_t>(made);
  const rte_eth_conf configuration{};
  rte_eth_dev_configure(device, queues, 1, &configuration);
  for (std::uint16_t queue = 0; queue < queues; ++queue) {
    rte_eth_rx_queue_setup(device, queue, 1024, 0, nullptr, pool);
  }
  rte_eth_tx_queue_setup(device, 0, 1024, 0, nullptr);
  rte_eth_dev_start(device);
  return device;
}

RingPorts::RingPorts(std::uint16_t ports, std::uint32_t depth, std::uint16_t rx_queues)
    : pool_(rte_pktmbuf_pool_create("bench_unused", 1, 0, 0, RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY)) {
  for (std::uint16_t port = 0; port < ports; ++port) {
    const std::string number = std::to_string(port);
    Port& made = ports_.emplace_back();
    for (std::uint16_t queue = 0; queue < rx_queues; ++queue) {
      made.receive.emplace_back(
          make_ring("bench_rx" + number + "_" + std::to_string(queue), depth));
    }
    made.transmit.reset(make_ring("bench_tx" + number, depth));
    made.device = make_device("bench" + number, made, pool_.get());
  }
}

RingPorts::~RingPorts() {
  for (const Port& port : ports_) {
    rte_eth_dev_info information{};
    rte_eth_dev_info_get(port.device, &information);
    rte_eth_dev_stop(port.device);
    rte_dev_remove(information.device);
  }
}

void RingPorts::put(std::uint16_t port, rte_mbuf* frame, std::uint16_t queue) {
  if (rte_ring_sp_enqueue(ports_[port].receive[queue].get(), frame) != 0) {
    throw std::logic_error("a receive ring is too short for the workload");
  }
}

unsigned RingPorts::take(std::uint16_t port, rte_mbuf** frames, unsigned limit) {
  return rte_ring_sc_dequeue_burst(ports_[port].transmit.get(), reinterpret_cast<void**>(frames),
                                   limit, nullptr);
}

std::uint64_t RingPorts::take_transmitted() {
  std::array<rte_mbuf*, kDrained> frames;
  std::uint64_t taken = 0;
  for (std::uint16_t port = 0; port < size(); ++port) {
    unsigned count = 0;
    while ((count = take(port, frames.data(), kDrained)) != 0) {
      for (unsigned i = 0; i < count; ++i) {
        free_shared_segments(*frames[i]);
      }
      taken += count;
    }
  }
  return taken;
}

void free_shared_segments(rte_mbuf& frame) {
  if (frame.nb_segs > 1) {
    rte_pktmbuf_free(std::exchange(frame.next, nullptr));
    frame.nb_segs = 1;
  }
}

} // namespace weir::bench
