// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "worker/call_buffers.hpp"
#include "worker/fold_tree.hpp"
#include "worker/latencies.hpp"
#include "worker/rank_calls.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::app {

struct SweepOptions {
  std::vector<host::Call> calls;
  std::vector<Placement> placements;
  std::uint32_t warm_ups = 5;
  std::uint32_t iterations = 20; // timed, after these
  std::uint32_t checked = 1;     // the last ones of these
  Waiting waiting = Waiting::sleep;
  std::vector<FoldTree> trees{FoldTree()}; // of each ring that carries calls
  std::string_view line_mark; // before lines of other ranks than 0, where its table stands beside
};

/// The same on all ranks.
struct Measurement {
  Latencies latencies;                // of each call, the slowest rank's
  std::optional<std::uint64_t> wrong; // elements on all ranks; none: nothing was checked
};

/// A call, measured. Without a measurement: it is not made in this placement.
struct SweepRow {
  host::Call call;
  std::optional<Measurement> out_of_place;
  std::optional<Measurement> in_place;
};

/// Whom a sweep tells what it does.
class SweepWatcher {
 public:
  virtual ~SweepWatcher() = default;

  /// Number `iteration` of a measurement's calls, from 1, warm-ups included.
  virtual void call_begins(const host::Call& call, Placement placement,
                           std::uint32_t iteration) = 0;
  /// On this rank; once for each call with a wrong result.
  virtual void result_is_wrong(const std::string& what) = 0;
  virtual void row_is_done(const SweepRow& row) = 0;
};

/// One rank's part in a sweep: each call is made again and again, and timed by the steady clock.
///
/// Before each call the input gets new values, and the ranks meet in a barrier. So a rank that is
/// still writing or comparing is in nobody's time. The times and the counts of wrong elements are
/// then all-reduced, by the same calls that are measured.
class Sweep {
 public:
  /// All must outlive it.
  Sweep(const SweepOptions& options, RankCalls& ranks, TensorMemory& memory, SweepWatcher& watcher);

  /// Throws host::Error. Goes on after wrong results.
  std::vector<SweepRow> run();

  /// Elements of this rank's results.
  std::uint64_t own_wrong() const { return own_wrong_; }

 private:
  std::optional<Measurement> measured_if_possible(const host::Call& call, Placement placement);
  Measurement measure(const host::Call& call, Placement placement);
  /// Nanoseconds of one call with new values. The barrier before it is not in them.
  std::uint64_t timed_call(const host::Call& call, const CallBuffers& buffers);
  std::uint64_t wrong_elements(const host::Call& call, Placement placement,
                               std::span<const std::byte> result);
  /// The ranks' numbers, reduced element by element.
  void combine(std::span<std::uint64_t> numbers, Operation operation);

  const SweepOptions& options_;
  RankCalls& ranks_;
  TensorMemory& memory_;
  SweepWatcher& watcher_;
  std::uint32_t calls_ = 0; // so far; names the values
  std::uint64_t own_wrong_ = 0;
};

} // namespace weir::app
