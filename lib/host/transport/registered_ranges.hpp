// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>

namespace weir::host {

/// The ranges of callers' memory that a device knows, each with the key by which it is told of
/// them. They do not overlap: memory that comes again was freed without a release, and its old key
/// means pages that are no longer there. For any thread.
class RegisteredRanges {
 public:
  /// Throws std::invalid_argument, which names both, if a part of the range is known already.
  void add(std::span<const std::uint8_t> range, std::uint32_t key);
  /// A range as it was added.
  void remove(std::span<const std::uint8_t> range);

  /// The key of the range that has all of the bytes. None: bytes of two neighbours count as
  /// unknown, because a device takes one key for them. Takes a time that grows with the logarithm
  /// of the ranges.
  std::optional<std::uint32_t> find(std::span<const std::uint8_t> bytes) const;

 private:
  struct Range {
    std::uintptr_t end = 0;
    std::uint32_t key = 0;
  };

  mutable std::mutex mutex_;
  std::map<std::uintptr_t, Range> ranges_; // by begin
};

} // namespace weir::host
