// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "call_plan.hpp"
#include "frame/counters.hpp"
#include "scenario.hpp"
#include "weir/reasons.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::fabric {

/// Rows of the tables of docs/protocol.md §3 and §4 that have no drop reason, and what else must
/// have happened.
#define WEIR_FABRIC_ROWS(X)                                                                        \
  X(slot_stored, "slot: stored")                                                                   \
  X(slot_completed, "slot: stored, and it was the last")                                           \
  X(slot_cached, "slot: complete, cached result")                                                  \
  X(hello_barrier, "slot: hello completed")                                                        \
  X(history_new, "history: new message")                                                           \
  X(history_hole, "history: hole filled")                                                          \
  X(history_repeat, "history: FIRST repeated")                                                     \
  X(history_inside, "history: packet inside a message")                                            \
  X(carried_by_send, "messages sent by SEND")                                                      \
  X(carried_by_write, "messages sent by RDMA WRITE")                                               \
  X(call_out_of_place, "call finished, out of place")                                              \
  X(call_of_list, "call finished, of coalesced tensors")                                           \
  X(call_empty, "call finished, of no element")                                                    \
  X(call_root, "call finished, with a root other than 0")                                          \
  X(calls_disputed, "a job whose ranks called different things has failed")                        \
  X(told_of_another, "a rank, beside which another run began, was told so")                        \
  X(operators_agreed, "hello answered, with all operators that it named")                          \
  X(operator_lacking, "hello answered, without an operator that a switch lacks")                   \
  X(call_by_operator, "call finished, by an operator of the users' own")                           \
  X(dead_neighbour, "a job finished after another one died on the same links")                     \
  X(tree_climbed, "tree: a set of hellos climbed")                                                 \
  X(tree_partial_sum, "tree: a partial sum left")                                                  \
  X(tree_total, "tree: a total left")                                                              \
  X(tree_again, "tree: a sum left again")                                                          \
  X(tree_lossy_uplinks, "tree: a job finished on lossy uplinks, and no rank repeated anything")    \
  X(tree_no_loss, "tree: a job finished without loss, each packet once on each uplink")            \
  X(parent_sums, "rogue parent: totals that nobody waits for, or others, of an attacked ring")     \
  X(parent_early, "rogue parent: a total before its sum has left, of an attacked ring")            \
  X(parent_answers, "rogue parent: acknowledges or asks for any PSN of an attacked ring")          \
  X(parent_asks, "rogue parent: asks for what is far away, of a sound ring")                       \
  X(parent_drops, "rogue parent: what must be dropped, of a sound ring")                           \
  X(child_sums, "rogue switch below: other partial sums of an attacked ring")                      \
  X(child_answers, "rogue switch below: acknowledges or asks for any PSN of an attacked ring")     \
  X(child_drops, "rogue switch below: what must be dropped, of a sound ring")                      \
  X(sums_shuffled, "rogue switches: what they have sent, again and out of order")                  \
  X(floods_of_attacked, "rogue switch: asks without end, of an attacked ring")                     \
  X(floods_of_sound, "rogue switch: asks without end, of a sound ring")                            \
  X(attacked_failed, "a job of an attacked ring of several switches has failed")                   \
  X(attacked_finished, "a job of an attacked ring of several switches has finished")

#define WEIR_FABRIC_ENUMERATOR(name, text) name,
enum class Row : std::uint8_t { WEIR_FABRIC_ROWS(WEIR_FABRIC_ENUMERATOR) count };
#undef WEIR_FABRIC_ENUMERATOR
inline constexpr std::size_t kRows = static_cast<std::size_t>(Row::count);

/// What happens to calls. Every collective must have met all of it.
#define WEIR_FABRIC_CALL_EVENTS(X)                                                                 \
  X(finished, "finished")                                                                          \
  X(queued, "begun while another one ran")                                                         \
  X(loss, "finished, and packets of its ring were lost meanwhile")                                 \
  X(later_run, "finished, in a run after one that had failed or ended")                            \
  X(straggler, "ran when a rank's worker was made to wait")                                        \
  X(death, "ran when a rank or its host died")                                                     \
  X(restart, "ran when another switch took the switch's place")

#define WEIR_FABRIC_ENUMERATOR(name, text) name,
enum class CallEvent : std::uint8_t { WEIR_FABRIC_CALL_EVENTS(WEIR_FABRIC_ENUMERATOR) count };
#undef WEIR_FABRIC_ENUMERATOR
inline constexpr std::size_t kCallEvents = static_cast<std::size_t>(CallEvent::count);

/// Actions of the network and the hosts, for the statistics.
#define WEIR_FABRIC_EVENTS(X)                                                                      \
  X(frames_lost)                                                                                   \
  X(answers_lost)                                                                                  \
  X(frames_duplicated)                                                                             \
  X(frames_damaged)                                                                                \
  X(frames_at_dead_links)                                                                          \
  X(rogue_frames)                                                                                  \
  X(replayed_frames)                                                                               \
  X(hellos_after_reset)                                                                            \
  X(forged_by_switches)                                                                            \
  X(forged_kinds)                                                                                  \
  X(rings_made)                                                                                    \
  X(false_greetings)                                                                               \
  X(members_killed)                                                                                \
  X(incarnations)                                                                                  \
  X(dead_runs_begun)                                                                               \
  X(stream_frames)                                                                                 \
  X(results_checked)                                                                               \
  X(orders_checked)                                                                                \
  X(own_answers)                                                                                   \
  X(results_sent_again)                                                                            \
  X(sums_by_helpers)                                                                               \
  X(helpers_late)                                                                                  \
  X(frames_handed_over)                                                                            \
  X(jobs_finished)                                                                                 \
  X(jobs_failed)                                                                                   \
  X(jobs_misled)                                                                                   \
  X(epochs_started)                                                                                \
  X(retransmissions)

#define WEIR_FABRIC_ENUMERATOR(name) name,
enum class Happening : std::uint8_t { WEIR_FABRIC_EVENTS(WEIR_FABRIC_ENUMERATOR) count };
#undef WEIR_FABRIC_ENUMERATOR
inline constexpr std::size_t kHappenings = static_cast<std::size_t>(Happening::count);

/// What a number of runs have reached.
class Coverage {
 public:
  void hit(Row row) { ++rows_[static_cast<std::size_t>(row)]; }

  /// To a call that runs.
  void hit(CallEvent event, host::CallKind kind) {
    ++calls_[static_cast<std::size_t>(event)][static_cast<std::size_t>(kind)];
  }

  /// The call has finished, and all is as it must be.
  void hit(const CallPlan& finished);

  void hit(FaultKind fault) { ++faults_[static_cast<std::size_t>(fault)]; }

  void hit(Happening happening) { add(happening, 1); }

  void add(Row row, std::uint64_t times) { rows_[static_cast<std::size_t>(row)] += times; }

  void add(Happening happening, std::uint64_t times) {
    happenings_[static_cast<std::size_t>(happening)] += times;
  }

  /// Adds what a switch counted until its end.
  void add(const frame::FrameCounters& counters);

  /// Adds what other runs reached.
  Coverage& operator+=(const Coverage& other);

  /// What must occur: how often it did, by its name.
  struct Line {
    std::string text;
    std::uint64_t times = 0;
  };

  std::vector<Line> required() const;

  std::string table() const;
  std::string statistics() const;

 private:
  std::array<std::uint64_t, kRows> rows_{};
  std::array<std::uint64_t, kFaultKinds> faults_{};
  std::array<std::uint64_t, kHappenings> happenings_{};
  std::array<std::array<std::uint64_t, host::kCallKinds>, kCallEvents> calls_{};
  std::array<std::uint64_t, kDataTypes> types_{}; // of calls that finished
  std::array<std::uint64_t, kOperations> operations_{};
  frame::FrameCounters counters_;
};

/// Why a drop reason cannot occur here. Empty when it can.
std::string_view why_unreachable(DropReason reason);

} // namespace weir::fabric
