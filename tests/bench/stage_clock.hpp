// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace weir::bench {

/// Where a thread spends its time: each moment belongs to the stage that was entered last.
template <typename Stage, std::size_t kStages>
class StageClock {
 public:
  using Clock = std::chrono::steady_clock;

  Stage stage() const { return stage_; }

  /// Returns the stage before.
  Stage enter(Stage stage) {
    const auto now = Clock::now();
    spent_[index_of(stage_)] += now - since_;
    ++visits_[index_of(stage_)];
    since_ = now;
    return std::exchange(stage_, stage);
  }

  /// Nanoseconds, without those that reading the clock takes.
  double ns(Stage stage) const {
    const auto spent = std::chrono::duration<double, std::nano>(spent_[index_of(stage)]).count();
    return spent - static_cast<double>(visits_[index_of(stage)]) * ns_of_reading_;
  }

  void reset() {
    spent_ = {};
    visits_ = {};
    since_ = Clock::now();
  }

 private:
  static std::size_t index_of(Stage stage) { return static_cast<std::size_t>(stage); }

  static double measure_reading() {
    constexpr unsigned kReadings = 10'000;
    const auto start = Clock::now();
    auto last = start;
    for (unsigned i = 0; i < kReadings; ++i) {
      last = Clock::now();
    }
    return std::chrono::duration<double, std::nano>(last - start).count() / kReadings;
  }

  double ns_of_reading_ = measure_reading();
  std::array<Clock::duration, kStages> spent_{};
  std::array<std::uint64_t, kStages> visits_{};
  Stage stage_{};
  Clock::time_point since_ = Clock::now();
};

} // namespace weir::bench
