// SPDX-License-Identifier: BSD-3-Clause
#include "network/simulated_network.hpp"

#include "frame/instant.hpp"
#include "wire/headers.hpp"

#include <algorithm>
#include <utility>

namespace weir::network {

SimulatedNetwork::SimulatedNetwork(const Plan& plan, std::vector<ring::RingSpec> rings,
                                   const stage::InlineSwitch::Settings& settings)
    : NetworkParts{PacketPool<Packet>(plan.longest_frame), Dice(plan.seed)},
      Star(pool, link_dice, std::vector<LinkTraits>(plan.ports, plan.links),
           std::vector<LinkTraits>(plan.ports, plan.links)),
      longest_frame_(plan.longest_frame), stations_(plan.ports) {
  install_alike(std::move(rings), settings);
}

void SimulatedNetwork::replace_switch(std::vector<ring::RingSpec> rings,
                                      const stage::InlineSwitch::Settings& settings) {
  reset_rings();
  install_alike(std::move(rings), settings);
}

/// All ports take frames of one length.
void SimulatedNetwork::install_alike(std::vector<ring::RingSpec> rings,
                                     const stage::InlineSwitch::Settings& settings) {
  install(std::move(rings), std::vector<std::uint32_t>(ports(), longest_frame_), settings);
}

void SimulatedNetwork::introduce(std::uint16_t port, const wire::MacAddress& mac) {
  wire::EthernetHeader header;
  header.destination = mac; // to itself: the switch learns from it and drops it
  header.source = mac;
  header.type.set(0x88b5); // IEEE 802, local experimental
  take(packets().make({reinterpret_cast<const std::uint8_t*>(&header), sizeof header}),
       {StarPlace::End::at_switch, port});
}

void SimulatedNetwork::send(std::uint16_t port, std::span<const std::uint8_t> frame) {
  Star::send(port, packets().make(frame));
}

void SimulatedNetwork::wake(std::uint16_t port, Time time) {
  events_.push(std::max(time, now_), {EventKind::wake, {StarPlace::End::at_station, port}});
}

void SimulatedNetwork::arrive(Time time, Packet& packet, const StarPlace& place) {
  events_.push(time, {EventKind::arrival, place, &packet});
}

bool SimulatedNetwork::advance() {
  if (events_.empty()) {
    return false;
  }
  const auto [time, event] = events_.pop();
  now_ = time;
  if (event.kind == EventKind::wake) {
    stations_[event.place.port]->expire();
  } else {
    take(*event.packet, event.place);
  }
  return true;
}

void SimulatedNetwork::take(Packet& packet, const StarPlace& place) {
  if (place.end == StarPlace::End::at_switch) {
    packet.ingress = place.port;
    return installed().accept(packet, frame::Instant::from_ns(now_));
  }
  stations_[place.port]->receive({packet.data, packet.length});
  packets().free(packet);
}

} // namespace weir::network
