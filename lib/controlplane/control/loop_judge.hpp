// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "l2/port_set.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::control {

/// Loop probes that came by a port between two looks.
struct ProbesSeen {
  std::uint64_t own = 0;         // which left by another port
  std::uint16_t own_from = 0;    // the port of the last one
  std::uint64_t others = 0;      // other switches'
  std::uint64_t others_from = 0; // the number of the last one's sender
};

/// What is known of the ports that are there: of the configuration, and of the rings.
struct PortsNow {
  l2::PortSet bridged = 0;   // `bridge: yes`
  l2::PortSet unbridged = 0; // `bridge: no`
  l2::PortSet of_trees = 0;  // that lead to other switches of rings' trees
};

/// What has happened to a port.
struct LoopFinding {
  enum class Kind : std::uint8_t {
    closed,      // its probes and those of `other` come back by one another
    reopened,    // for so long no probe has come by it
    wrong_cable, // a probe has come by it, and it has `bridge: no`
  };

  Kind kind{};
  std::uint16_t port = 0;
  std::uint16_t other = 0;  // of a closed port
  std::uint64_t sender = 0; // of a wrong cable: the other switch's number, 0: this switch
};

/// What is known of loops at one port.
struct PortLoops {
  std::uint64_t closed_until_ns = 0; // 0: it is not closed
  std::uint16_t other = 0;           // of a closed port: by which the loop comes back
  std::uint64_t loops = 0;           // how often it was closed
  std::uint64_t wrong_cable = 0;     // probes that came by it while it had `bridge: no`
};

/// Decides which ports are closed for a loop, from what has come back of the switch's probes. Times
/// are of one clock, in nanoseconds.
class LoopJudge {
 public:
  /// So long a port stays closed after the last probe that came back by it. So a loop that stays
  /// does not come alive again and again.
  static constexpr std::uint64_t kClosed = 30'000'000'000;
  /// A switch that has sent nothing for so long is not behind the port any more.
  static constexpr std::uint64_t kSwitchIsThere = 3'000'000'000;
  /// A wrong cable is news again when it was silent for so long.
  static constexpr std::uint64_t kCableIsNews = 60'000'000'000;

  /// `seen` is by port. Of two ports of a loop the higher one is closed, but first one that leads
  /// to no switch of a ring's tree: behind the other is a rack.
  std::vector<LoopFinding> look(std::span<const ProbesSeen> seen, const PortsNow& ports,
                                std::uint64_t now_ns);

  /// Nothing more is looked for: every port opens.
  std::vector<LoopFinding> end();

  l2::PortSet closed() const;
  /// The ports behind which there are other switches that send probes.
  l2::PortSet to_switches(std::uint64_t now_ns) const;

  const PortLoops& of(std::uint16_t port) const { return ports_[port].loops; }

 private:
  struct State {
    PortLoops loops;
    std::uint64_t switch_at_ns = 0;      // when another switch's probe came last; 0: never
    std::uint64_t wrong_cable_at_ns = 0; // when a probe came last that should not; 0: never
  };

  using Findings = std::vector<LoopFinding>;

  void look_at_bridged(std::uint16_t port, const ProbesSeen& seen, l2::PortSet of_trees,
                       std::uint64_t now_ns, Findings& findings);
  void look_at_unbridged(std::uint16_t port, const ProbesSeen& seen, std::uint64_t now_ns,
                         Findings& findings);
  void close(std::uint16_t port, std::uint16_t other, std::uint64_t now_ns, Findings& findings);
  std::uint16_t one_to_close(std::uint16_t lower, std::uint16_t higher, l2::PortSet of_trees) const;
  void reopen(l2::PortSet bridged, std::uint64_t now_ns, Findings& findings);

  bool is_closed(std::uint16_t port) const { return ports_[port].loops.closed_until_ns != 0; }

  std::array<State, l2::kMaxPorts> ports_{};
};

} // namespace weir::control
