// SPDX-License-Identifier: BSD-3-Clause
#include "host/transport/registered_ranges.hpp"

#include <algorithm>

namespace weir::host {
namespace {

std::uintptr_t begin_of(std::span<const std::uint8_t> bytes) {
  return reinterpret_cast<std::uintptr_t>(bytes.data());
}

} // namespace

void RegisteredRanges::add(std::span<const std::uint8_t> range, std::uint32_t key) {
  const std::lock_guard lock(mutex_);
  const std::uintptr_t begin = begin_of(range);
  ranges_.emplace(begin, Range{begin + range.size(), key});
  longest_ = std::max(longest_, range.size());
}

void RegisteredRanges::remove(std::span<const std::uint8_t> range, std::uint32_t key) {
  const std::lock_guard lock(mutex_);
  const auto [first, last] = ranges_.equal_range(begin_of(range));
  const auto found =
      std::find_if(first, last, [&](const auto& entry) { return entry.second.key == key; });
  if (found != last) {
    ranges_.erase(found);
  }
}

std::optional<std::uint32_t> RegisteredRanges::find(std::span<const std::uint8_t> bytes) const {
  const std::lock_guard lock(mutex_);
  const std::uintptr_t end = begin_of(bytes) + bytes.size();
  for (auto next = ranges_.upper_bound(begin_of(bytes)); next != ranges_.begin();) {
    --next;
    const auto& [begin, range] = *next;
    if (range.end >= end) {
      return range.key;
    }
    if (end - begin > longest_) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

} // namespace weir::host
