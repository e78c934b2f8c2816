// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coverage.hpp"
#include "world.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace weir::fabric {

enum class OnFailure : std::uint8_t { stop, go_on };

/// Which seeds have several switches.
enum class Mix : std::uint8_t {
  some,  // one in 48
  stars, // none
  trees, // all
};

struct CampaignPlan {
  std::uint64_t first = 1;
  std::uint64_t count = 2000;
  std::optional<double> minutes; // instead of a number of seeds
  unsigned jobs = 1;             // threads
  Mix mix = Mix::some;
  Tracing tracing = Tracing::off;
  OnFailure on_failure = OnFailure::stop;
  std::string program; // for the printed command that replays a seed
};

/// Runs many seeds on several threads, one seed at a time. Runs are independent and their coverage
/// is added up, so the result does not depend on the number of threads.
class Campaign {
 public:
  explicit Campaign(CampaignPlan plan) : plan_(std::move(plan)) {}

  /// Prints failures as they come, and the progress every few seconds.
  void run();

  const Coverage& coverage() const { return coverage_; }

  std::uint64_t seeds() const { return done_; }

  std::uint64_t failed() const { return failed_; }

  /// Seconds since run() began.
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  void work();
  std::optional<std::uint64_t> next_seed();
  void note(std::uint64_t seed, const std::string& failure);
  void tell_progress();
  double seconds_left() const;

  const CampaignPlan plan_;
  Clock::time_point began_;
  std::atomic<std::uint64_t> dealt_{0};
  std::atomic<bool> is_stopped_{false};

  std::mutex mutex_; // guards all below and standard output
  Clock::time_point told_;
  std::uint64_t done_ = 0;
  std::uint64_t failed_ = 0;
  Coverage coverage_;
};

/// For I4: from now on, a signal that ends the process is reported with the seed of its thread.
void report_crashes();

} // namespace weir::fabric
