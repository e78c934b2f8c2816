// SPDX-License-Identifier: BSD-3-Clause
#include "simulated_network.hpp"

#include "frame/frame.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

namespace weir::bench {
namespace {

stage::InlineSwitch::Settings settings() {
  stage::InlineSwitch::Settings settings;
  settings.worker.level = op::best_cpu_level();
  return settings;
}

} // namespace

SimulatedNetwork::SimulatedNetwork(std::uint16_t ports, const LinkTraits& traits,
                                   std::vector<ring::RingSpec> rings, std::uint64_t seed)
    : traits_(traits), random_(seed), stations_(ports), up_(ports), down_(ports),
      switch_(std::move(rings), std::vector<std::uint32_t>(ports, kFrameBytes), settings(), *this) {
}

void SimulatedNetwork::introduce(std::uint16_t port, const wire::MacAddress& mac) {
  wire::EthernetHeader header;
  header.destination = mac; // to itself: the switch learns it and drops the frame
  header.source = mac;
  header.type.set(0x88b5); // IEEE 802, local experimental
  Packet& packet = make({reinterpret_cast<const std::uint8_t*>(&header), sizeof header});
  packet.ingress = port;
  switch_.accept(packet, frame::Instant::from_ns(now_));
}

void SimulatedNetwork::send(std::uint16_t port, std::span<const std::uint8_t> frame) {
  carry(up_[port], EventKind::at_switch, port, make(frame));
}

void SimulatedNetwork::wake(std::uint16_t port, Time time) {
  push(std::max(time, now_), EventKind::wake, port);
}

bool SimulatedNetwork::advance() {
  if (events_.empty()) {
    return false;
  }
  const auto [time, event] = events_.pop();
  now_ = time;
  switch (event.kind) {
  case EventKind::at_switch:
    event.packet->ingress = event.port;
    switch_.accept(*event.packet, frame::Instant::from_ns(now_));
    break;
  case EventKind::at_station:
    stations_[event.port]->receive({event.packet->data, event.packet->length});
    free_.push_back(event.packet);
    break;
  case EventKind::wake:
    stations_[event.port]->expire();
    break;
  }
  return true;
}

void SimulatedNetwork::transmit(frame::Frame& frame, l2::PortSet ports) {
  switch_.count(frame.departure);
  switch_.count_copies(static_cast<std::uint64_t>(std::popcount(ports)) - 1);
  auto& packet = static_cast<Packet&>(frame);
  for (; (ports & (ports - 1)) != 0; ports &= ports - 1) {
    const auto port = static_cast<std::uint16_t>(std::countr_zero(ports));
    carry(down_[port], EventKind::at_station, port, make(packet.bytes()));
  }
  const auto last = static_cast<std::uint16_t>(std::countr_zero(ports));
  carry(down_[last], EventKind::at_station, last, packet);
}

void SimulatedNetwork::release(frame::Frame& frame) {
  free_.push_back(&static_cast<Packet&>(frame));
}

SimulatedNetwork::Packet& SimulatedNetwork::make(std::span<const std::uint8_t> bytes) {
  if (free_.empty()) {
    free_.push_back(&packets_.emplace_back());
  }
  Packet& packet = *free_.back();
  free_.pop_back();
  static_cast<frame::Frame&>(packet) = {};
  packet.data = packet.storage.data();
  packet.length = static_cast<std::uint32_t>(bytes.size());
  std::memcpy(packet.data, bytes.data(), bytes.size());
  return packet;
}

void SimulatedNetwork::push(Time time, EventKind kind, std::uint16_t port, Packet* packet) {
  events_.push(time, {kind, port, packet});
}

/// A lost frame also takes its time on the link.
void SimulatedNetwork::carry(netsim::Transmitter& link, EventKind arrival, std::uint16_t port,
                             Packet& packet) {
  const double bits = 8.0 * (packet.length + kWireOverhead);
  link.take(now_, static_cast<Time>(std::llround(std::ceil(bits / traits_.bits_per_ns))));
  if (std::uniform_real_distribution<>()(random_) < traits_.loss) {
    free_.push_back(&packet);
    return;
  }
  push(link.free_from() + traits_.delay, arrival, port, &packet);
}

} // namespace weir::bench
