// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>

namespace weir::netsim {

/// Picoseconds since the run began. Integers, so that every machine computes the same.
using Time = std::uint64_t;
inline constexpr Time kNever = UINT64_MAX;
inline constexpr Time kNanosecond = 1000;
inline constexpr Time kMicrosecond = 1000 * kNanosecond;
inline constexpr Time kSecond = 1'000'000 * kMicrosecond;

constexpr double to_us(Time time) {
  return static_cast<double>(time) / static_cast<double>(kMicrosecond);
}

/// The time for `bytes` at a rate, rounded up. bits_per_second is not 0; bytes are below 2^40.
constexpr Time transmission_time(std::uint64_t bytes, std::uint64_t bits_per_second) {
  constexpr std::uint64_t kMillion = 1'000'000;
  const std::uint64_t scaled = bytes * 8 * kMillion; // of 10^-6 bits
  const std::uint64_t micros = scaled / bits_per_second;
  const unsigned __int128 rest = scaled % bits_per_second;
  return micros * kMillion +
         static_cast<Time>((rest * kMillion + bits_per_second - 1) / bits_per_second);
}

/// transmission_time of one rate. It remembers a few sizes, because the division takes longer than
/// the rest of an event's work.
class Pace {
 public:
  explicit Pace(std::uint64_t bits_per_second) : bits_per_second_(bits_per_second) {}

  Time time_of(std::uint32_t bytes) {
    Known& known = known_[bytes / 16 % known_.size()];
    if (known.bytes != bytes) {
      known = {bytes, transmission_time(bytes, bits_per_second_)};
    }
    return known.time;
  }

 private:
  struct Known {
    std::uint32_t bytes = 0;
    Time time = 0;
  };

  std::uint64_t bits_per_second_;
  std::array<Known, 4> known_;
};

} // namespace weir::netsim
