// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coverage.hpp"
#include "packet.hpp"
#include "scenario.hpp"
#include "stage/inline_switch.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace weir::fabric {

/// One ring, seen from outside: in which order the packets of its present job leave the switch
/// (I7), whatever was lost before it. Also finds the rows of docs/protocol.md's tables that they
/// met, from counters and from what is known about the job.
class RingWatch {
 public:
  RingWatch(const Scenario& scenario, std::uint16_t ring, std::uint16_t node, Coverage& coverage);

  void begin(std::uint32_t generation);
  void expect(std::uint16_t rank, std::uint32_t first_psn);

  /// The switch has lost its state.
  void forget_order() { is_undisturbed_ = false; }

  bool is_undisturbed() const { return is_undisturbed_; }

  /// Call them around InlineSwitch::accept of a member's packet.
  void before(const Packet& packet, const stage::InlineSwitch& engine);
  void after(const Packet& packet, const stage::InlineSwitch& engine);

  /// A packet of a member leaves. Throws Violation I7, except where a stranger's copy of another
  /// may have left.
  void leaves(const Packet& packet) { leaves(packet.origin, packet.packet.psn); }

  void leaves(const Origin& origin, std::uint32_t psn);

 private:
  struct Message {
    std::uint32_t id = 0;
    std::uint32_t first_psn = 0;
  };

  struct Connection {
    std::uint32_t next_out = 0;    // PSN
    std::vector<Message> messages; // as noted by the switch, by ascending PSN
  };

  struct Counts {
    std::uint64_t contributions = 0;
    std::uint64_t completed = 0;
    std::uint64_t hellos = 0;
    std::uint64_t cached = 0;
    std::uint64_t repeats_held = 0;
  };

  /// The content of the packet's bytes, parsed again.
  struct Reading {
    bool starts_message = false;
    std::uint32_t qp = 0;
    std::uint32_t psn = 0;
    std::optional<std::uint32_t> id; // of a FIRST or ONLY
  };

  static Reading read(const Packet& packet);
  bool is_current(const Origin& origin) const;
  Counts counts(const stage::InlineSwitch& engine) const;
  void tell_slot_rows(const Counts& now) const;
  void tell_first(Connection& connection, const Reading& reading, const Counts& now);
  void tell_other(const Counts& now) const;

  std::uint16_t ring_;
  const RingTree::Part& part_;
  // Strangers send copies of its packets, as they came or changed; or it cannot be told what
  // switches send again of earlier runs.
  bool is_copied_;
  std::uint32_t depth_; // 2N
  Coverage& coverage_;
  std::uint32_t generation_ = 0;
  bool is_undisturbed_ = true; // the switch has kept its state since the job began
  std::vector<Connection> connections_;
  Counts before_;
  std::uint64_t newest_ = 0; // M of the packet's connection, before the packet
  Reading reading_;
};

} // namespace weir::fabric
