// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "l2/mac_table.hpp"
#include "l2/port_set.hpp"
#include "weir/reasons.hpp"

#include <cstdint>
#include <optional>
#include <span>

namespace weir::l2 {

/// The ports that a frame leaves by: a non-empty set, or none and the reason.
struct Egress {
  PortSet ports = 0;
  DropReason drop{}; // when ports is empty
};

/// A station that is tied to its port, whatever port its frames come from.
struct Pin {
  wire::MacAddress station;
  std::uint16_t port = 0;
};

/// A transparent learning bridge (IEEE 802.1D §7). It ignores VLANs and has no spanning tree.
class Bridge {
 public:
  /// With ports 0 .. `ports` - 1.
  Bridge(MacTable& stations, std::uint16_t ports);

  // Only while no other thread uses the bridge.
  void add_port(std::uint16_t port);
  /// Frames are no longer flooded to it. Stations that it has learnt there stay; see
  /// MacTable::forget_port().
  void remove_port(std::uint16_t port);

  /// Learns the source of a frame that came in on `ingress`. Group addresses are no valid sources
  /// (IEEE 802.3 §3.2.3); they are not learnt.
  void learn(std::span<const std::uint8_t> frame, std::uint16_t ingress, std::uint64_t now);

  /// The ports that a frame from `ingress` leaves by.
  Egress egress_of(std::span<const std::uint8_t> frame, std::uint16_t ingress,
                   std::uint64_t now) const;

  /// The same when the port is known.
  static Egress egress_by(std::uint16_t port, std::uint16_t ingress);

  /// Pins the frame's source to the port that it came in by. nullopt when MacTable::pin() refuses,
  /// or the source is a group address.
  std::optional<Pin> pin_source(std::span<const std::uint8_t> frame, std::uint16_t ingress,
                                std::uint64_t now);
  void unpin(const Pin& pin, std::uint64_t now);
  /// Pins a pinned station to another port, as MacTable::move_pin(). nullopt when it is pinned to
  /// its port by others too.
  std::optional<Pin> move(const Pin& pin, std::uint16_t port, std::uint64_t now);

 private:
  MacTable& stations_;
  PortSet all_;
};

} // namespace weir::l2
