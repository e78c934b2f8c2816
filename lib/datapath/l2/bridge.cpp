// SPDX-License-Identifier: BSD-3-Clause
#include "l2/bridge.hpp"

#include "wire/headers.hpp"

namespace weir::l2 {
namespace {

PortSet first(std::uint16_t ports) {
  return ports == kMaxPorts ? ~PortSet{0} : set_of(ports) - 1;
}

/// 01-80-C2-00-00-00 … 0F: never forwarded by a bridge (IEEE 802.1D table 7-10).
bool is_link_local(const wire::MacAddress& mac) {
  return to_number(mac) >> 4 == 0x0180'c200'000;
}

} // namespace

Bridge::Bridge(MacTable& stations, std::uint16_t ports) : stations_(stations), all_(first(ports)) {
  follow_ports();
}

void Bridge::add_port(std::uint16_t port) {
  all_ |= set_of(port);
}

void Bridge::remove_port(std::uint16_t port) {
  all_ &= ~set_of(port);
}

void Bridge::shut(PortSet ports, Why why) {
  shut_by_[static_cast<std::size_t>(why)] = ports;
  shut_ = shut_by_[0] | shut_by_[1];
  follow_ports();
}

void Bridge::lead_to_switches(PortSet ports) {
  to_switches_ = ports;
  follow_ports();
}

void Bridge::follow_ports() {
  ways_.fill(~shut_);
  for (std::uint16_t port = 0; port < kMaxPorts; ++port) {
    ways_[port] = is_shut(port) ? 0 : ~shut_ & ~set_of(port);
    shortest_learnt_[port] = is_shut(port) ? SIZE_MAX : sizeof(wire::EthernetHeader);
    shortest_of_neighbours_[port] = has(to_switches_, port) ? SIZE_MAX : shortest_learnt_[port];
  }
}

void Bridge::learn(std::span<const std::uint8_t> frame, std::uint16_t ingress, std::uint64_t now) {
  learn_if_long(shortest_learnt_[ingress], frame, ingress, now);
}

void Bridge::learn_neighbour(std::span<const std::uint8_t> frame, std::uint16_t ingress,
                             std::uint64_t now) {
  learn_if_long(shortest_of_neighbours_[ingress], frame, ingress, now);
}

[[gnu::always_inline]] inline void Bridge::learn_if_long(std::size_t shortest,
                                                         std::span<const std::uint8_t> frame,
                                                         std::uint16_t ingress, std::uint64_t now) {
  if (frame.size() < shortest) {
    return;
  }
  const auto& ethernet = wire::view_as<wire::EthernetHeader>(frame.data());
  if (!ethernet.source.is_group()) {
    stations_.learn(ethernet.source, ingress, now);
  }
}

Egress Bridge::egress_of(std::span<const std::uint8_t> frame, std::uint16_t ingress,
                         std::uint64_t now) const {
  if (frame.size() < sizeof(wire::EthernetHeader)) {
    return {0, DropReason::runt};
  }
  const auto& ethernet = wire::view_as<wire::EthernetHeader>(frame.data());
  if (is_link_local(ethernet.destination)) {
    return {0, DropReason::link_local};
  }
  const PortSet ways = ways_[ingress % kIngresses];
  if (!ethernet.destination.is_group()) {
    const std::uint16_t port = stations_.port_of(ethernet.destination, now, kMaxPorts);
    if (port != kMaxPorts) {
      return {ways & set_of(port),
              port == ingress ? DropReason::same_port : DropReason::not_bridged};
    }
  }
  return {ways & all_, ways == 0 ? DropReason::not_bridged : DropReason::no_egress};
}

Egress Bridge::egress_by(std::uint16_t port, std::uint16_t ingress) {
  return port == ingress ? Egress{0, DropReason::same_port} : Egress{set_of(port), {}};
}

std::optional<Pin> Bridge::pin_source(std::span<const std::uint8_t> frame, std::uint16_t ingress,
                                      std::uint64_t now) {
  const Pin pin{wire::view_as<wire::EthernetHeader>(frame.data()).source, ingress};
  const bool is_pinned =
      !pin.station.is_group() && !is_shut(ingress) && stations_.pin(pin.station, pin.port, now);
  return is_pinned ? std::optional(pin) : std::nullopt;
}

std::optional<Pin> Bridge::move(const Pin& pin, std::uint16_t port, std::uint64_t now) {
  if (is_shut(port)) {
    unpin(pin, now);
    return std::nullopt;
  }
  return stations_.move_pin(pin.station, pin.port, port, now)
             ? std::optional(Pin{pin.station, port})
             : std::nullopt;
}

void Bridge::unpin(const Pin& pin, std::uint64_t now) {
  stations_.unpin(pin.station, pin.port, now);
}

} // namespace weir::l2
