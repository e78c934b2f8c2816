// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace weir::events {

/// How many lines of a subject may be written in a minute, which begins with the first line.
class LineLimit {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr std::chrono::seconds kMinute{60};

  /// Whether one more line of the subject, of at most so many, may be written now.
  bool admits(const std::string& subject, std::uint64_t most, Clock::time_point now) {
    Minute& minute = minutes_.try_emplace(subject, Minute{.since = now}).first->second;
    if (minute.lines == most) {
      ++minute.left_out;
      return false;
    }
    ++minute.lines;
    return true;
  }

  /// Forgets the minutes that are over. Tells for each how many lines were left out, if any were.
  void end_minutes(Clock::time_point now,
                   const std::function<void(const std::string&, std::uint64_t)>& tell) {
    std::erase_if(minutes_, [&](const auto& entry) {
      const auto& [subject, minute] = entry;
      const bool is_over = now - minute.since >= kMinute;
      if (is_over && minute.left_out != 0) {
        tell(subject, minute.left_out);
      }
      return is_over;
    });
  }

 private:
  struct Minute {
    Clock::time_point since;
    std::uint64_t lines = 0;
    std::uint64_t left_out = 0;
  };

  std::map<std::string, Minute> minutes_;
};

} // namespace weir::events
