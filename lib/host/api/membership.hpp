// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/api/group.hpp"
#include "host/api/ring_claim.hpp"
#include "host/base/event_waiter.hpp"
#include "host/collective/engine.hpp"
#include "host/control/job_control.hpp"
#include "host/node/node_map.hpp"
#include "host/node/node_memory.hpp"
#include "host/rendezvous/agreement.hpp"
#include "host/shrink/group_history.hpp"
#include "host/switch_rings/held_rings.hpp"
#include "host/transport/transport.hpp"
#include "program/operator.hpp"

#include <bitset>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir::host {

/// Who folds by an operator of the users' own.
enum class OperatorFold : std::uint8_t {
  in_switch,
  hosts,   // no switch was asked
  refused, // a switch on the way lacks it
};

/// Why the hosts fold by the operator of this number: a sentence without its full stop.
std::string describe_refused(std::size_t number, const program::Operator& by);

/// One rank's view of the ranks that reduce together. One thread at a time.
struct Membership {
  Incarnation incarnation;
  Algorithm algorithm = Algorithm::in_switch;
  std::string fallback_reason; // empty while the switch reduces
  std::uint64_t callers_turned_away = 0;
  std::shared_ptr<GroupHistory> history;           // before the waiter, which knows its listener
  std::vector<std::uint16_t> members;              // original ranks, by rank
  NodeMap nodes;                                   // which ranks share a NIC
  std::vector<std::uint32_t> rings;                // ids, by channel
  std::vector<std::uint32_t> used_rings;           // of those: the ones that carry the calls
  std::string missing_rings;                       // why the others do not; empty: there are none
  bool has_asked_for_operators = false;            // the hellos named those of the options
  std::bitset<kMostOperators> operators_of_switch; // by number: what all switches fold by
  std::string missing_operators; // which of the options' no switch folds by; empty: there are none
  std::unique_ptr<HeldRings> held_rings;   // on rank 0, if it had them made
  std::unique_ptr<RingClaim> ring_claim;   // if the switch's configuration has them
  std::shared_ptr<NodeMemory> node_memory; // null: no rank of the group shares a NIC
  std::unique_ptr<Transport> transport;
  std::unique_ptr<JobControl> control;
  std::unique_ptr<Engine> engine;      // over both
  std::unique_ptr<EventWaiter> waiter; // for both; for any thread at any time
  std::unique_ptr<Bell> bell;          // ends a sleep in progress()
  Deadline next_look;                  // for callers, of a thread that does not sleep

  /// Until when its thread may sleep now, on the waiter. None: there may be work.
  std::optional<Deadline> next_work() const;

  /// Makes one step of the engine. With no work, sleeps until there may be some, or the deadline.
  /// True if the step did any work. Throws the error that ends the group.
  bool progress(Deadline deadline);

  /// Call it when this rank makes no more calls. Waits until every rank has its last
  /// acknowledgement, because a predecessor that still repeats a message needs our queue pair, and
  /// because all ranks would stop waiting if rank 0 ended.
  void leave();

  /// Other groups of this process may have the rings from now on. Any thread.
  void give_up_rings() const {
    if (ring_claim) {
      ring_claim->release();
    }
  }

  GroupStatistics statistics() const;

  OperatorFold fold_of_operator(std::size_t number) const {
    if (!has_asked_for_operators) {
      return OperatorFold::hosts;
    }
    return operators_of_switch[number] ? OperatorFold::in_switch : OperatorFold::refused;
  }

 private:
  void look_for_callers(Deadline now);
};

} // namespace weir::host
