// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace weir::host {

/// The ranges of memory that a device knows, each with the key by which it is told of them. Ranges
/// may overlap. For any thread.
class RegisteredRanges {
 public:
  void add(std::span<const std::uint8_t> range, std::uint32_t key);
  void remove(std::span<const std::uint8_t> range, std::uint32_t key);

  /// The key of the range that has all of the bytes and ends last, of equal ones the newest. None:
  /// bytes of two neighbours count as unknown, because a device takes one key for them. Takes a
  /// time that grows with the logarithm of the ranges; add() and remove() look at all.
  std::optional<std::uint32_t> find(std::span<const std::uint8_t> bytes) const;

 private:
  struct Range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::uint32_t key = 0;
    std::uint64_t number = 0; // of its registration
  };

  static bool is_better(const Range& one, const Range& other);
  void find_farthest();

  mutable std::mutex mutex_;
  std::uint64_t registrations_ = 0;
  std::vector<Range> ranges_;         // by begin
  std::vector<std::size_t> farthest_; // of ranges_[0 .. i]: the one that ends last, the newest
};

} // namespace weir::host
