// SPDX-License-Identifier: BSD-3-Clause
#include "l2/bridge.hpp"

#include "wire/headers.hpp"

namespace weir::l2 {
namespace {

PortSet one(std::uint16_t port) {
  return PortSet{1} << port;
}

PortSet first(std::uint16_t ports) {
  return ports == kMaxPorts ? ~PortSet{0} : one(ports) - 1;
}

/// 01-80-C2-00-00-00 … 0F: never forwarded by a bridge (IEEE 802.1D table 7-10).
bool is_link_local(const wire::MacAddress& mac) {
  return to_number(mac) >> 4 == 0x0180'c200'000;
}

} // namespace

Bridge::Bridge(MacTable& stations, std::uint16_t ports) : stations_(stations), all_(first(ports)) {}

void Bridge::add_port(std::uint16_t port) {
  all_ |= one(port);
}

void Bridge::remove_port(std::uint16_t port) {
  all_ &= ~one(port);
}

void Bridge::learn(std::span<const std::uint8_t> frame, std::uint16_t ingress, std::uint64_t now) {
  if (frame.size() < sizeof(wire::EthernetHeader)) {
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
  if (!ethernet.destination.is_group()) {
    const std::uint16_t port = stations_.port_of(ethernet.destination, now, kMaxPorts);
    if (port != kMaxPorts) {
      return egress_by(port, ingress);
    }
  }
  return {all_ & ~one(ingress), DropReason::no_egress};
}

Egress Bridge::egress_by(std::uint16_t port, std::uint16_t ingress) {
  return port == ingress ? Egress{0, DropReason::same_port} : Egress{one(port), {}};
}

std::optional<Pin> Bridge::pin_source(std::span<const std::uint8_t> frame, std::uint16_t ingress,
                                      std::uint64_t now) {
  const Pin pin{wire::view_as<wire::EthernetHeader>(frame.data()).source, ingress};
  const bool is_pinned = !pin.station.is_group() && stations_.pin(pin.station, pin.port, now);
  return is_pinned ? std::optional(pin) : std::nullopt;
}

std::optional<Pin> Bridge::move(const Pin& pin, std::uint16_t port, std::uint64_t now) {
  return stations_.move_pin(pin.station, pin.port, port, now)
             ? std::optional(Pin{pin.station, port})
             : std::nullopt;
}

void Bridge::unpin(const Pin& pin, std::uint64_t now) {
  stations_.unpin(pin.station, pin.port, now);
}

} // namespace weir::l2
