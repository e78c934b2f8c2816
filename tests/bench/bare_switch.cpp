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
  std::vector<std::uint32_t> messages(workload.shape().rings); // of each ring so far
  std::uint32_t packet = 0;
  std::uint16_t rank = 0;
  for (const Arrival& arrival : workload.data()) { // message by message, rank by rank
    const std::uint32_t message = arrival.ring * depth + messages[arrival.ring] % depth;
    places_[arrival.port].push_back({message * packets + packet, rank});
    packet = (packet + 1) % packets;
    rank = static_cast<std::uint16_t>((rank + (packet == 0 ? 1 : 0)) % world_);
    messages[arrival.ring] += packet == 0 && rank == 0 ? 1 : 0;
  }
}

void BareSwitch::describe(const FrameStock& stock) {
  for (std::size_t index = 0; index < stock.size(); ++index) {
    frame::Frame& frame = lcore::make_frame(stock.frame(index), stock.port_of(index));
    frame.packet = wire::parse(frame.bytes());
  }
}

void BareSwitch::run_until_sent(RingPorts& ports, std::uint64_t frames) {
  next_.fill(0);
  for (std::uint64_t sent = 0; sent < frames;) {
    for (std::uint16_t port = 0; port < ports.size(); ++port) {
      std::array<rte_mbuf*, kBurst> burst;
      const std::uint16_t count = rte_eth_rx_burst(ports.device(port), 0, burst.data(), kBurst);
      take({burst.data(), count}, port);
    }
    for (std::uint16_t port = 0; port < ports.size(); ++port) {
      std::vector<rte_mbuf*>& leaving = leaving_[port];
      rte_eth_tx_burst(ports.device(port), 0, leaving.data(),
                       static_cast<std::uint16_t>(leaving.size()));
      leaving.clear();
    }
    const std::uint64_t left = ports.take_transmitted();
    if (left == 0) {
      throw std::logic_error("frames of the workload complete no slot");
    }
    sent += left;
  }
}

void BareSwitch::take(std::span<rte_mbuf* const> burst, std::uint16_t port) {
  lcore::prefetch_descriptions(burst);
  lcore::prefetch_headers(burst);
  for (rte_mbuf* mbuf : burst) {
    lcore::prefetch_payload(lcore::frame_of(mbuf));
  }
  for (rte_mbuf* mbuf : burst) {
    frame::Frame& frame = lcore::frame_of(mbuf);
    if (!wire::verify_icrc(frame)) {
      throw std::logic_error("a frame of the workload has a wrong ICRC");
    }
    const Place& place = places_[port][next_[port]++];
    frames_[std::size_t{place.slot} * world_ + place.rank] = &frame;
    if (++arrived_[place.slot] == world_) {
      arrived_[place.slot] = 0;
      complete(place.slot);
    }
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
