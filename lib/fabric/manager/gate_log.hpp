// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gate/incident.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace weir::manager {

/// What is told of the gate. One thread notes, any reads the counts.
class GateLog {
 public:
  using Clock = std::chrono::steady_clock;

  /// The line for the log. Nothing: there was one of this kind within a second, or the same
  /// complaint within a minute.
  std::optional<std::string> note(gate::Incident incident, const std::string& sentence,
                                  Clock::time_point now);

  // Processes that did not end by themselves.
  std::uint64_t connections() const { return counts_[0]; }

  std::uint64_t acceptors() const { return counts_[1]; }

 private:
  struct Last {
    std::string sentence;
    Clock::time_point at;
    std::uint64_t left_out = 0;
  };

  std::array<std::atomic<std::uint64_t>, 2> counts_{};
  std::array<std::optional<Last>, 3> last_; // by incident
};

} // namespace weir::manager
