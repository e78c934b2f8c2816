// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "event_queue.hpp"
#include "ring_tree.hpp"
#include "stage/inline_switch.hpp"

#include <cstdint>
#include <vector>

namespace weir::fabric {

/// One ring at one switch: how often what it has sent to another switch leaves again while nothing
/// of it is acknowledged. Whoever asks gets no more than docs/security.md says, "What a packet
/// makes the switch send".
class PaceWatch {
 public:
  PaceWatch(const RingTree::Part& part, std::uint16_t ring) : part_(part), ring_(ring) {}

  /// After all that the switch does. Throws Violation §11.
  void look(const stage::InlineSwitch& engine, Time now);

 private:
  /// A connection whose `a` stays where it is.
  struct Standstill {
    std::uint32_t session = 0;
    std::uint32_t unacknowledged = 0;
    std::uint64_t resent = 0;      // before
    std::uint64_t outstanding = 0; // packets, at most; forged PSNs may make them fewer
    Time since = 0;
  };

  bool leads_to_switch(std::uint16_t sender) const;
  void look_at(const recovery::Flow& flow, std::uint32_t session, std::uint16_t sender, Time now);

  const RingTree::Part& part_;
  std::uint16_t ring_;
  std::vector<Standstill> standstills_; // by sender
};

} // namespace weir::fabric
