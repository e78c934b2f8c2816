// SPDX-License-Identifier: BSD-3-Clause
#include "bare_switch.hpp"

#include "lcore/mbuf_frame.hpp"
#include "lcore/prefetch.hpp"
#include "slot/result_packet.hpp"
#include "wire/icrc.hpp"
#include "wire/parse.hpp"

#include <rte_ethdev.h>

#include <stdexcept>

namespace weir::bench {

BareSwitch::BareSwitch(const Workload& workload)
    : world_(workload.shape().world), mtu_(workload.shape().payload),
      kernel_(op::find_kernel(DataType::f32, Operation::sum, op::best_cpu_level())) {
  const std::uint32_t packets = workload.shape().packets;
  const std::uint32_t depth = workload.rings().front().depth();
  const std::size_t slots = std::size_t{workload.shape().rings} * depth * packets;
  arrived_.resize(slots);
  frames_.resize(slots * world_);
  results_.resize(slots * mtu_);
  for (std::size_t at = 0; at < workload.data().size(); ++at) { // message, ring, rank, packet
    const Arrival& arrival = workload.data()[at];
    const std::size_t message = at / packets / world_ / workload.shape().rings % depth;
    const std::size_t slot = (std::size_t{arrival.ring} * depth + message) * packets + at % packets;
    places_[arrival.port].push_back(
        {static_cast<std::uint32_t>(slot), static_cast<std::uint32_t>(at / packets % world_)});
  }
}

void BareSwitch::describe(const FrameStock& stock) {
  for (std::size_t index = 0; index < stock.size(); ++index) {
    frame::Frame& frame = lcore::make_frame(stock.frame(index), stock.port_of(index));
    frame.packet = wire::parse(frame.bytes());
  }
}

void BareSwitch::run_until_sent(RingPorts& ports, std::uint64_t frames) {
  for (std::uint64_t sent = 0; sent < frames; sent += ports.take_transmitted()) {
    if (round(ports) == 0) {
      throw std::logic_error("frames of the workload complete no slot");
    }
  }
}

unsigned BareSwitch::round(RingPorts& ports) {
  unsigned received = 0;
  for (std::uint16_t port = 0; port < ports.size(); ++port) {
    std::array<rte_mbuf*, kBurst> burst;
    const std::uint16_t count = rte_eth_rx_burst(ports.device(port), 0, burst.data(), kBurst);
    lcore::for_each_parsed(std::span(burst).first(count), [&](frame::Frame& frame) {
      check(frame);
      add(frame, next_place(port));
    });
    received += count;
  }
  for (std::uint16_t port = 0; port < ports.size(); ++port) {
    std::vector<rte_mbuf*>& leaving = leaving_[port];
    rte_eth_tx_burst(ports.device(port), 0, leaving.data(),
                     static_cast<std::uint16_t>(leaving.size()));
    leaving.clear();
  }
  return received;
}

void BareSwitch::check(frame::Frame& frame) {
  if (!wire::verify_icrc(frame)) {
    throw std::logic_error("a frame of the workload has a wrong ICRC");
  }
}

void BareSwitch::add(frame::Frame& frame, const Place& place) {
  frames_[std::size_t{place.slot} * world_ + place.rank] = &frame;
  if (++arrived_[place.slot] == world_) {
    arrived_[place.slot] = 0;
    complete(place.slot);
  }
}

void BareSwitch::complete(std::uint32_t slot) {
  const std::span<frame::Frame* const> frames(&frames_[std::size_t{slot} * world_], world_);
  const wire::Packet& packet = frames.front()->packet;
  const std::size_t skip = slot::ina_bytes(packet);
  const std::span data(&results_[std::size_t{slot} * mtu_], packet.payload_bytes - skip);
  const slot::SlotResult result{data, slot::fold_frames(frames, skip, {kernel_}, data)};
  for (std::uint16_t rank = 0; rank < world_; ++rank) {
    slot::seal_result(*frames[rank], result, 0);
    const auto receiver = static_cast<std::uint16_t>((rank + 1u) % world_);
    leaving_[receiver % Workload::kMaxPorts].push_back(lcore::mbuf_of(*frames[rank]));
  }
}

} // namespace weir::bench
