// SPDX-License-Identifier: BSD-3-Clause
#include "host/transport/registered_ranges.hpp"

#include <fmt/format.h>

#include <iterator>
#include <stdexcept>

namespace weir::host {
namespace {

std::uintptr_t begin_of(std::span<const std::uint8_t> bytes) {
  return reinterpret_cast<std::uintptr_t>(bytes.data());
}

} // namespace

void RegisteredRanges::add(std::span<const std::uint8_t> range, std::uint32_t key) {
  const std::lock_guard lock(mutex_);
  const std::uintptr_t begin = begin_of(range);
  const std::uintptr_t end = begin + range.size();
  // Of those that begin before our end, the last one ends last.
  const auto behind = ranges_.lower_bound(end);
  if (behind != ranges_.begin()) {
    const auto& [known_begin, known] = *std::prev(behind);
    if (known.end > begin) {
      throw std::invalid_argument(
          fmt::format("address: found {:#x} .. {:#x}, and {:#x} .. {:#x} is registered; allowed: "
                      "memory of which nothing is registered (was it released before it was "
                      "freed?)",
                      begin, end - 1, known_begin, known.end - 1));
    }
  }
  ranges_.emplace_hint(behind, begin, Range{end, key});
}

void RegisteredRanges::remove(std::span<const std::uint8_t> range) {
  const std::lock_guard lock(mutex_);
  ranges_.erase(begin_of(range));
}

std::optional<std::uint32_t> RegisteredRanges::find(std::span<const std::uint8_t> bytes) const {
  const std::lock_guard lock(mutex_);
  const std::uintptr_t begin = begin_of(bytes);
  const auto behind = ranges_.upper_bound(begin);
  if (behind == ranges_.begin()) {
    return std::nullopt;
  }
  const Range& range = std::prev(behind)->second;
  return begin + bytes.size() <= range.end ? std::optional(range.key) : std::nullopt;
}

} // namespace weir::host
