// SPDX-License-Identifier: BSD-3-Clause
#include "host/transport/ethdev_io.hpp"

#include "ethdev/device_end.hpp"
#include "files/unix_peers.hpp"
#include "host/base/error.hpp"
#include "host/base/stream.hpp"

#include <fmt/format.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <thread>

namespace weir::host {
namespace {

constexpr std::uint16_t kNoPort = RTE_MAX_ETHPORTS;
constexpr unsigned kMbufs = 8191; // two queues of descriptors, bursts, and what memif holds
constexpr std::uint16_t kDescriptors = 1024;
constexpr std::uint16_t kDataRoom = 4096 + 256 + RTE_PKTMBUF_HEADROOM; // path MTU and headers

[[noreturn]] void refuse_device(const std::string& device, std::string_view what, int error) {
  throw Error(ErrorCode::transport_failure, std::nullopt,
              fmt::format("device {}: {}: {}", device, what, rte_strerror(std::abs(error))));
}

/// Held while devices come and go: two threads must not change DPDK's list of devices at once.
std::mutex& device_list() {
  static std::mutex mutex;
  return mutex;
}

/// Keeps programs started by this process from inheriting memif's control socket: with a copy open,
/// the switch would not see the end of this process.
void close_on_exec(const std::string& devargs) {
  for (const files::UnixPeer& peer : files::unix_peers()) {
    if (devargs.find(peer.path) != std::string::npos) {
      fcntl(peer.descriptor, F_SETFD, FD_CLOEXEC);
    }
  }
}

} // namespace

EthdevIo::EthdevIo(const std::string& devargs) : devargs_(devargs), port_(kNoPort) {}

EthdevIo::EthdevIo(const std::string& devargs, std::chrono::milliseconds timeout)
    : EthdevIo(devargs) { // so that the destructor runs when a step fails
  {
    const std::lock_guard lock(device_list());
    probe();
    configure();
  }

  await_link(timeout);
  close_on_exec(devargs_);
}

EthdevIo::~EthdevIo() {
  if (!birthplace_.is_here()) {
    return;
  }
  rte_pktmbuf_free_bulk(outgoing_.data(), static_cast<unsigned>(outgoing_.size()));
  rte_pktmbuf_free(reserved_);
  close();
  rte_mempool_free(pool_);
}

/// Also removes the device from its bus, so that its name can be probed again.
void EthdevIo::close() const {
  rte_eth_dev_info info{};
  const std::lock_guard lock(device_list());
  if (port_ != kNoPort && rte_eth_dev_info_get(port_, &info) == 0) {
    ethdev::stop_and_close_device(port_);
    rte_dev_remove(info.device);
  }
}

void EthdevIo::probe() {
  const int error = rte_dev_probe(devargs_.c_str());
  if (error != 0) {
    refuse_device(devargs_, "cannot be probed", error);
  }
  const std::string name = devargs_.substr(0, devargs_.find(','));
  const int missing = rte_eth_dev_get_port_by_name(name.c_str(), &port_);
  if (missing != 0) {
    refuse_device(devargs_, "gives no port", missing);
  }
}

void EthdevIo::configure() {
  const std::string pool_name = fmt::format("weir_worker_{}", port_);
  pool_ = rte_pktmbuf_pool_create(pool_name.c_str(), kMbufs, 256, 0, kDataRoom, SOCKET_ID_ANY);
  if (pool_ == nullptr) {
    refuse_device(devargs_, "no memory for packet buffers", rte_errno);
  }
  const auto check = [&](std::string_view step, int error) {
    if (error < 0) {
      refuse_device(devargs_, step, error);
    }
  };
  const rte_eth_conf configuration{};
  std::uint16_t receive_descriptors = kDescriptors;
  std::uint16_t transmit_descriptors = kDescriptors;
  check("configure", rte_eth_dev_configure(port_, 1, 1, &configuration));
  check("descriptors",
        rte_eth_dev_adjust_nb_rx_tx_desc(port_, &receive_descriptors, &transmit_descriptors));
  check("receive queue",
        rte_eth_rx_queue_setup(port_, 0, receive_descriptors, SOCKET_ID_ANY, nullptr, pool_));
  check("transmit queue",
        rte_eth_tx_queue_setup(port_, 0, transmit_descriptors, SOCKET_ID_ANY, nullptr));
  check("start", rte_eth_dev_start(port_));
  rte_eth_promiscuous_enable(port_); // our MAC may differ from the port's
  rte_ether_addr address{};
  check("MAC address", rte_eth_macaddr_get(port_, &address));
  std::memcpy(mac_.bytes.data(), address.addr_bytes, mac_.bytes.size());
}

void EthdevIo::await_link(std::chrono::milliseconds timeout) const {
  const Deadline deadline = deadline_after(Clock::now(), timeout);
  while (!has_link()) {
    if (Clock::now() >= deadline) {
      throw Error(ErrorCode::transport_failure, std::nullopt,
                  fmt::format("device {}: no link after {} ms: is the switch running, with the "
                              "other end of this device?",
                              devargs_, timeout.count()));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

std::size_t EthdevIo::receive(FrameReader& reader) {
  std::array<rte_mbuf*, kBurst> mbufs;
  reader_.enter();
  const std::uint16_t count = rte_eth_rx_burst(port_, 0, mbufs.data(), kBurst);
  reader_.leave();
  for (std::uint16_t i = 0; i < count; ++i) {
    if (mbufs[i]->nb_segs == 1) { // our frames fit in one segment
      reader.accept({rte_pktmbuf_mtod(mbufs[i], std::uint8_t*), mbufs[i]->pkt_len});
    }
  }
  rte_pktmbuf_free_bulk(mbufs.data(), count);
  return count;
}

std::span<std::uint8_t> EthdevIo::reserve(std::size_t bytes) {
  if (outgoing_.size() >= kBurst) {
    flush();
  }
  if (outgoing_.size() >= kBurst) {
    return {};
  }
  if (reserved_ == nullptr) {
    reserved_ = rte_pktmbuf_alloc(pool_);
  }
  if (reserved_ == nullptr || rte_pktmbuf_tailroom(reserved_) < bytes) {
    return {};
  }
  return {rte_pktmbuf_mtod(reserved_, std::uint8_t*), bytes};
}

void EthdevIo::commit(std::size_t frame_bytes) {
  assert(reserved_ != nullptr && frame_bytes <= rte_pktmbuf_tailroom(reserved_));
  rte_pktmbuf_append(reserved_, static_cast<std::uint16_t>(frame_bytes));
  outgoing_.push_back(reserved_);
  reserved_ = nullptr;
}

/// Without a link, frames are lost as on a wire. Then the transport's retries run out.
void EthdevIo::flush() {
  reader_.enter();
  const std::uint16_t taken =
      rte_eth_tx_burst(port_, 0, outgoing_.data(), static_cast<std::uint16_t>(outgoing_.size()));
  reader_.leave();
  outgoing_.erase(outgoing_.begin(), outgoing_.begin() + taken);
  if (outgoing_.size() >= kBurst && !has_link()) {
    rte_pktmbuf_free_bulk(outgoing_.data(), static_cast<unsigned>(outgoing_.size()));
    outgoing_.clear();
  }
}

bool EthdevIo::has_link() const {
  rte_eth_link link{};
  return rte_eth_link_get_nowait(port_, &link) != 0 || link.link_status == RTE_ETH_LINK_UP;
}

} // namespace weir::host
