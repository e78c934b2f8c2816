// SPDX-License-Identifier: BSD-3-Clause
#include "host/transport/registered_ranges.hpp"

#include <algorithm>
#include <tuple>

namespace weir::host {
namespace {

std::uintptr_t begin_of(std::span<const std::uint8_t> bytes) {
  return reinterpret_cast<std::uintptr_t>(bytes.data());
}

} // namespace

void RegisteredRanges::add(std::span<const std::uint8_t> range, std::uint32_t key) {
  const std::lock_guard lock(mutex_);
  const std::uintptr_t begin = begin_of(range);
  const auto behind = std::ranges::upper_bound(ranges_, begin, {}, &Range::begin);
  farthest_.reserve(ranges_.size() + 1); // so that find_farthest() cannot fail
  ranges_.insert(behind, {begin, begin + range.size(), key, ++registrations_});
  find_farthest();
}

void RegisteredRanges::remove(std::span<const std::uint8_t> range, std::uint32_t key) {
  const std::lock_guard lock(mutex_);
  const std::uintptr_t begin = begin_of(range);
  const auto found = std::ranges::find_if(ranges_, [&](const Range& known) {
    return known.begin == begin && known.end == begin + range.size() && known.key == key;
  });
  if (found != ranges_.end()) {
    ranges_.erase(found);
    find_farthest();
  }
}

bool RegisteredRanges::is_better(const Range& one, const Range& other) {
  return std::tie(one.end, one.number) > std::tie(other.end, other.number);
}

void RegisteredRanges::find_farthest() {
  farthest_.clear();
  std::size_t best = 0;
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    best = is_better(ranges_[i], ranges_[best]) ? i : best;
    farthest_.push_back(best);
  }
}

std::optional<std::uint32_t> RegisteredRanges::find(std::span<const std::uint8_t> bytes) const {
  const std::lock_guard lock(mutex_);
  const std::uintptr_t begin = begin_of(bytes);
  const auto behind = std::ranges::upper_bound(ranges_, begin, {}, &Range::begin);
  if (behind == ranges_.begin()) {
    return std::nullopt;
  }
  const auto last = static_cast<std::size_t>(behind - ranges_.begin()) - 1;
  const Range& range = ranges_[farthest_[last]];
  return begin + bytes.size() <= range.end ? std::optional(range.key) : std::nullopt;
}

} // namespace weir::host
