// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>

namespace weir::host {

/// The ranges of memory that a device knows, each with the key by which it is told of them. Ranges
/// may overlap. For any thread.
class RegisteredRanges {
 public:
  void add(std::span<const std::uint8_t> range, std::uint32_t key);
  void remove(std::span<const std::uint8_t> range, std::uint32_t key);

  /// The key of a range that has all of the bytes. None: bytes of two neighbours count as unknown,
  /// because a device takes one key for them.
  std::optional<std::uint32_t> find(std::span<const std::uint8_t> bytes) const;

 private:
  struct Range {
    std::uintptr_t end = 0;
    std::uint32_t key = 0;
  };

  mutable std::mutex mutex_;
  std::multimap<std::uintptr_t, Range> ranges_; // by begin
  std::size_t longest_ = 0;                     // that there was, so that find() can end early
};

} // namespace weir::host
