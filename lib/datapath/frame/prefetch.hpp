// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::frame {

inline constexpr std::size_t kCacheLine = 64;

/// A core's own caches. Into the second one it loads more lines at a time (docs/lab/packet-path.md,
/// "Into the second level first").
enum class Cache : std::uint8_t { first, second };

/// Asks for the cache line that the byte is in. The empty assembly is for GCC, which leaves out the
/// call of a function that does nothing but __builtin_prefetch.
template <Cache kInto = Cache::first>
[[gnu::always_inline]] inline void prefetch(const void* byte) {
  constexpr int locality = kInto == Cache::first ? 3 : 2;
  __builtin_prefetch(byte, 0, locality);
  asm volatile("" : : "r"(byte));
}

/// Asks for each line of so many bytes, if a line begins at the first one; else perhaps not for the
/// last line.
template <Cache kInto = Cache::first>
[[gnu::always_inline]] inline void prefetch_range(const void* from, std::size_t bytes) {
  const auto* line = static_cast<const std::byte*>(from);
  std::size_t lines = (bytes + kCacheLine - 1) / kCacheLine;
  for (; lines >= 2; lines -= 2, line += 2 * kCacheLine) {
    prefetch<kInto>(line);
    prefetch<kInto>(line + kCacheLine);
  }
  if (lines != 0) {
    prefetch<kInto>(line);
  }
}

/// Asks for all of an object, likewise.
template <typename Object>
[[gnu::always_inline]] inline void prefetch_all(const Object* object) {
  prefetch_range(object, sizeof(Object));
}

} // namespace weir::frame
