// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>

namespace weir::network {

/// Millionths.
using Ppm = std::uint32_t;
inline constexpr Ppm kAlways = 1'000'000;
inline constexpr Ppm kPercent = 10'000;

/// All randomness of a run. The standard defines the generator and this class its use, so a seed
/// gives the same run everywhere.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t next() { return engine_(); }

  /// 0 … count-1, for a count below 2^32.
  std::uint64_t below(std::uint64_t count) { return (engine_() >> 32) * count >> 32; }

  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + below(high - low + 1);
  }

  bool chance(Ppm probability) { return probability != 0 && below(kAlways) < probability; }

  template <typename Value>
  Value pick(std::initializer_list<Value> values) {
    return values.begin()[below(values.size())];
  }

  template <typename Container>
  auto& one_of(Container& values) {
    return values[below(values.size())];
  }

 private:
  std::mt19937_64 engine_;
};

} // namespace weir::network
