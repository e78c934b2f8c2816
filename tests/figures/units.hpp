// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace weir::figures {

inline constexpr std::uint64_t kKib = 1024;
inline constexpr std::uint64_t kMib = 1024 * kKib;
inline constexpr double kMega = 1e6;
inline constexpr double kGiga = 1e9;
inline constexpr double kTera = 1e12;
inline constexpr double kBitsPerByte = 8;

/// How many times `by` goes into `count`, the last time perhaps not whole.
constexpr std::uint64_t divided_up(std::uint64_t count, std::uint64_t by) {
  return (count + by - 1) / by;
}

} // namespace weir::figures
