// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

namespace weir::app {

/// The sizes of a sweep, in bytes.
struct SizeRange {
  std::uint64_t begin = 0; // at least 1
  std::uint64_t end = 0;   // the last size is not larger
  std::uint64_t factor = 2;
  std::uint64_t increment = 0; // 0: sizes grow by the factor
};

inline constexpr std::size_t kMostSizes = 10'000;

/// In ascending order; kMostSizes + 1 of them if there are too many.
std::vector<std::uint64_t> sizes_of(const SizeRange& range);

} // namespace weir::app
