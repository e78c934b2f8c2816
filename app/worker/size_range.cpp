// SPDX-License-Identifier: BSD-3-Clause
#include "worker/size_range.hpp"

namespace weir::app {
namespace {

/// 0 after the last one.
std::uint64_t next_size(const SizeRange& range, std::uint64_t size) {
  if (range.increment != 0) {
    return range.increment > range.end - size ? 0 : size + range.increment;
  }
  return size > range.end / range.factor ? 0 : size * range.factor;
}

} // namespace

std::vector<std::uint64_t> sizes_of(const SizeRange& range) {
  std::vector<std::uint64_t> sizes;
  std::uint64_t size = range.begin <= range.end ? range.begin : 0;
  for (; size != 0 && sizes.size() <= kMostSizes; size = next_size(range, size)) {
    sizes.push_back(size);
  }
  return sizes;
}

} // namespace weir::app
