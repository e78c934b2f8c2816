// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/stream.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace weir::host {

/// How long a rank has waited for something to move. Time in which the rank itself could not look
/// is not the others' silence: a process that is stopped, gets no CPU, or stands on a machine that
/// is suspended finds nothing moved when it goes on, and must not end the job for that.
class StallTimer {
 public:
  /// More than this between two looks counts as this much.
  static constexpr std::chrono::milliseconds kLongestPause{100};
  /// Who waits between two looks waits no longer than this, so that all of it counts.
  static constexpr std::chrono::milliseconds kLookPeriod{50};
  /// A pause that an error speaks of.
  static constexpr std::chrono::milliseconds kWorthTelling{1000};

  StallTimer(std::chrono::milliseconds timeout, Deadline now)
      : timeout_(timeout), last_look_(now) {}

  /// Something moved.
  void renew();

  /// The same, and no time before `now` counts: the rank had nothing to wait for.
  void restart(Deadline now);

  /// The rank looks for frames now; once before every other call that depends on time.
  void look(Deadline now);

  /// Whether it has waited for the timeout, and `more`.
  bool is_over(std::chrono::milliseconds more = {}) const;

  /// How often it looked since something moved, for an error's text.
  std::string describe() const;

  /// That the rank itself stood within the last timeout, for an error's text; otherwise empty.
  std::string own_pause() const;

 private:
  const std::chrono::milliseconds timeout_;
  Deadline last_look_;
  std::uint64_t looks_ = 0;             // since something moved
  std::chrono::nanoseconds waited_{0};  // since then, long pauses cut
  std::chrono::nanoseconds longest_{0}; // pause since then
  std::chrono::nanoseconds told_{0};    // the last pause that is worth telling
  Deadline told_end_ = Deadline::min(); // when it was over
};

} // namespace weir::host
