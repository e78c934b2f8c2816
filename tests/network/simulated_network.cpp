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
      Star(pool, link_dice, plan.links, plan.links), longest_frame_(plan.longest_frame),
      stations_(plan.links.size()), waiting_(plan.links.size()) {
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

region::Region& SimulatedNetwork::add_region(const region::RegionSpec& spec,
                                             const region::RegionBirth& birth) {
  region::Region& region =
      installed().add_region(spec, birth, stage::FairQueue::kNoTenant, frame::Instant{now_});
  expect_timer();
  return region;
}

void SimulatedNetwork::serve(unsigned frames) {
  installed().serve(frames, frame::Instant{now_});
  expect_timer();
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

void SimulatedNetwork::leave(std::uint16_t port, Packet& packet) {
  EgressQueue<Packet>& waiting = waiting_[port];
  const bool was_empty = waiting.is_empty();
  if (!waiting.add(packet)) {
    ++refused_;
    return packets().free(packet);
  }
  if (was_empty) {
    send_waiting(port);
  }
}

/// Sends what can be sent now, and makes the event for the rest.
void SimulatedNetwork::send_waiting(std::uint16_t port) {
  EgressQueue<Packet>& waiting = waiting_[port];
  Link& link = from_switch(port);
  while (!waiting.is_empty() && link.free_from() <= now_) {
    Star::leave(port, waiting.take());
  }
  if (!waiting.is_empty()) {
    events_.push(link.free_from(), {EventKind::link_free, {StarPlace::End::at_station, port}});
  }
}

bool SimulatedNetwork::advance() {
  if (events_.empty()) {
    return false;
  }
  const auto [time, event] = events_.pop();
  now_ = time;
  happen(event);
  return true;
}

void SimulatedNetwork::advance_to(Time time) {
  while (!events_.empty()) {
    const auto [due, event] = events_.pop();
    if (due > time) {
      events_.push(due, event);
      break;
    }
    now_ = due;
    happen(event);
  }
  now_ = std::max(now_, time);
}

void SimulatedNetwork::happen(const Event& event) {
  switch (event.kind) {
  case EventKind::wake:
    stations_[event.place.port]->expire();
    break;
  case EventKind::link_free:
    send_waiting(event.place.port);
    break;
  case EventKind::arrival:
    take(*event.packet, event.place);
    break;
  case EventKind::look:
    poll_timers();
    break;
  }
}

void SimulatedNetwork::poll_timers() {
  if (switch_timer_.goes_off(now_)) {
    installed().poll_timers(frame::Instant{now_});
    expect_timer();
  }
}

/// The switch's timers are looked at when they are due.
void SimulatedNetwork::expect_timer() {
  if (const auto time = switch_timer_.set(installed().next_timer())) {
    events_.push(std::max(*time, now_), {EventKind::look});
  }
}

void SimulatedNetwork::take(Packet& packet, const StarPlace& place) {
  if (place.end == StarPlace::End::at_switch) {
    packet.ingress = place.port;
    installed().accept(packet, frame::Instant{now_});
    return expect_timer();
  }
  stations_[place.port]->receive({packet.data, packet.length});
  packets().free(packet);
}

} // namespace weir::network
