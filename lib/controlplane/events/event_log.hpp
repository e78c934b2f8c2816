// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "events/event.hpp"
#include "events/line_limit.hpp"

#include <memory>
#include <mutex>

namespace weir::events {

/// Where lines go.
class LineSink {
 public:
  virtual ~LineSink() = default;

  virtual void put(const Event& event) = 0;
};

/// To the journal with fields of their own (sd_journal_send(3)), if the service manager reads
/// standard error into it; otherwise as text to standard error.
std::unique_ptr<LineSink> sink_of_this_process();

/// Writes events, in a minute at most ten of a kind about one thing and a hundred of a kind, of
/// each tenant that is named, so that nothing on the network can fill a disk. Any thread may write.
class EventLog {
 public:
  static constexpr std::uint64_t kMostLines = 10;

  explicit EventLog(std::unique_ptr<LineSink> sink) : sink_(std::move(sink)) {}

  void write(const Event& event, LineLimit::Clock::time_point now = LineLimit::Clock::now());

  /// Tells of lines that were left out in minutes that are over, as write() does. To be called now
  /// and then, because there may be no next line.
  void tell_left_out(LineLimit::Clock::time_point now = LineLimit::Clock::now());

 private:
  bool is_admitted(const Event& event, LineLimit::Clock::time_point now);
  void end_minutes(LineLimit::Clock::time_point now);

  std::mutex mutex_;
  std::unique_ptr<LineSink> sink_;
  LineLimit limit_;
};

} // namespace weir::events
