// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/mpi/calls.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace weir::mpi {

/// Where a call goes: by Weir, or to MPI for this reason. All reasons are equal on all ranks of the
/// communicator.
enum class Way {
  weir,
  off,
  wrong_arguments,
  intercommunicator,
  alone,
  one_nic,
  too_many_ranks,
  operation,
  type,
  unequal_parts,
  below_threshold,
  too_large,
  no_ring_yet,
  no_ring
};
inline constexpr std::size_t kWays = 14;

std::string_view reason_of(Way way);

/// What WEIR_VERBOSE=1 tells when the job ends.
class Report {
 public:
  void count(Collective collective, Mode mode, Way way, std::uint64_t bytes);
  /// A sentence about a communicator.
  void note(std::string sentence);
  /// Lines about this rank's calls. `threshold` in bytes.
  [[nodiscard]] std::string text(std::uint64_t threshold) const;

 private:
  struct Counts {
    std::atomic<std::uint64_t> calls{0};
    std::atomic<std::uint64_t> bytes{0};
  };

  [[nodiscard]] std::string row(Collective collective, Mode mode) const;

  std::array<std::array<std::array<Counts, kWays>, kModes>, kCollectives> counts_{};
  mutable std::mutex mutex_;
  std::vector<std::string> notes_; // under mutex_
  std::uint64_t more_notes_ = 0;   // under mutex_
};

/// The process's one report.
Report& report();

/// A line on stderr.
void say(const std::string& line);

/// The same before the job may end: waits until the line has been read, for a second at most. A
/// launcher that is told to end a job reads no more of what its ranks have said (MPICH's Hydra).
void say_last_words(const std::string& line);

} // namespace weir::mpi
