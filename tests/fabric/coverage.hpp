// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/counters.hpp"
#include "scenario.hpp"
#include "weir/reasons.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::fabric {

/// Rows of the tables of docs/protocol.md §3 and §4 that have no drop reason.
#define WEIR_FABRIC_ROWS(X)                                                                        \
  X(slot_stored, "slot: stored")                                                                   \
  X(slot_completed, "slot: stored, and it was the last")                                           \
  X(slot_cached, "slot: complete, cached result")                                                  \
  X(hello_barrier, "slot: hello completed")                                                        \
  X(history_new, "history: new message")                                                           \
  X(history_hole, "history: hole filled")                                                          \
  X(history_repeat, "history: FIRST repeated")                                                     \
  X(history_inside, "history: packet inside a message")

#define WEIR_FABRIC_ENUMERATOR(name, text) name,
enum class Row : std::uint8_t { WEIR_FABRIC_ROWS(WEIR_FABRIC_ENUMERATOR) count };
#undef WEIR_FABRIC_ENUMERATOR
inline constexpr std::size_t kRows = static_cast<std::size_t>(Row::count);

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

  void hit(FaultKind fault) { ++faults_[static_cast<std::size_t>(fault)]; }

  void hit(Happening happening) { add(happening, 1); }

  void add(Happening happening, std::uint64_t times) {
    happenings_[static_cast<std::size_t>(happening)] += times;
  }

  /// Adds what a switch counted until its end.
  void add(const frame::FrameCounters& counters);

  /// Adds what other runs reached.
  Coverage& operator+=(const Coverage& other);

  /// Rows, drop reasons and foreign reasons that should occur and did not.
  std::size_t missing() const;
  /// Rows, drop reasons and foreign reasons that should occur.
  static std::size_t expected();

  std::string table() const;
  std::string statistics() const;

 private:
  std::array<std::uint64_t, kRows> rows_{};
  std::array<std::uint64_t, kFaultKinds> faults_{};
  std::array<std::uint64_t, kHappenings> happenings_{};
  frame::FrameCounters counters_;
};

/// Why a drop reason cannot occur here. Empty when it can.
std::string_view why_unreachable(DropReason reason);

} // namespace weir::fabric
