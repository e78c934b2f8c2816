// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "l2/mac_table.hpp"
#include "l2/port_set.hpp"
#include "weir/reasons.hpp"
#include "wire/headers.hpp"

#include <array>
#include <cstddef>
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
///
/// A port that is shut is none of the bridge's: nothing is learnt from it, and no frame goes from
/// it to another port, or from another port to it, unless its port is named (egress_by). That is
/// left to packets between ring neighbours.
class Bridge {
 public:
  enum class Why : std::uint8_t {
    configured, // `bridge: no`
    loop,
  };

  /// With ports 0 .. `ports` - 1.
  Bridge(MacTable& stations, std::uint16_t ports);

  // Only while no other thread uses the bridge.
  void add_port(std::uint16_t port);
  /// Frames are no longer flooded to it. Stations that it has learnt there stay; see
  /// MacTable::forget_port().
  void remove_port(std::uint16_t port);
  /// Shuts these ports and opens the others. Stations that are known behind a shut port stay, and
  /// frames to them are dropped; see MacTable::forget_port(). Who shuts ports for several reasons
  /// says so for each: a port is open when no reason shuts it.
  void shut(PortSet ports, Why why);
  /// Behind these ports are other switches of trees (docs/protocol.md §11).
  void lead_to_switches(PortSet ports);

  bool is_shut(std::uint16_t port) const { return has(shut_, port); }

  /// The open ports but this one; none if this one is shut.
  PortSet others_of(std::uint16_t port) const { return ways_[port] & all_; }

  /// Learns the source of a frame that came in on `ingress`. Group addresses are no valid sources
  /// (IEEE 802.3 §3.2.3); they are not learnt.
  void learn(std::span<const std::uint8_t> frame, std::uint16_t ingress, std::uint64_t now);

  /// The same of a packet between ring neighbours. It teaches nothing on a port that leads to
  /// another switch of a tree: it came by the tree's links, and for other frames its source may be
  /// behind another port.
  void learn_neighbour(std::span<const std::uint8_t> frame, std::uint16_t ingress,
                       std::uint64_t now);

  /// Whether the frame's source is tied to another port.
  bool is_tied_elsewhere(std::span<const std::uint8_t> frame, std::uint16_t ingress) const {
    return stations_.has_tied() && frame.size() >= sizeof(wire::EthernetHeader) &&
           stations_.is_tied_elsewhere(wire::view_as<wire::EthernetHeader>(frame.data()).source,
                                       ingress);
  }

  /// The ports that a frame from `ingress` leaves by. The switch's own come from no port.
  Egress egress_of(std::span<const std::uint8_t> frame, std::uint16_t ingress,
                   std::uint64_t now) const;

  /// The same when the port is known.
  static Egress egress_by(std::uint16_t port, std::uint16_t ingress);

  /// Pins the frame's source to the port that it came in by. nullopt when MacTable::pin() refuses,
  /// the source is a group address, or the port is shut.
  std::optional<Pin> pin_source(std::span<const std::uint8_t> frame, std::uint16_t ingress,
                                std::uint64_t now);
  void unpin(const Pin& pin, std::uint64_t now);
  /// Pins a pinned station to another port, as MacTable::move_pin(). nullopt when it is pinned to
  /// its port by others too, or the other port is shut; then this pin is gone.
  std::optional<Pin> move(const Pin& pin, std::uint16_t port, std::uint64_t now);

 private:
  // Ports, and above them frame::kNoPort, the ingress of the switch's own frames.
  static constexpr std::size_t kIngresses = 2UL * kMaxPorts;

  void follow_ports();
  void learn_if_long(std::size_t shortest, std::span<const std::uint8_t> frame,
                     std::uint16_t ingress, std::uint64_t now);

  MacTable& stations_;
  PortSet all_;
  std::array<PortSet, 2> shut_by_{}; // indexed by Why
  PortSet shut_ = 0;                 // by any
  PortSet to_switches_ = 0;
  // By ingress, from these sets: where frames may go if the port is there, and how long a frame, or
  // one between ring neighbours, must be to be learnt from.
  std::array<PortSet, kIngresses> ways_{};
  std::array<std::size_t, kMaxPorts> shortest_learnt_{};
  std::array<std::size_t, kMaxPorts> shortest_of_neighbours_{};
};

} // namespace weir::l2
