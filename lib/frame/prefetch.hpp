// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace weir::frame {

inline constexpr std::size_t kCacheLine = 64;

/// Asks for the cache line that the byte is in. The empty assembly is for GCC, which leaves out the
/// call of a function that does nothing but __builtin_prefetch.
[[gnu::always_inline]] inline void prefetch(const void* byte) {
  __builtin_prefetch(byte);
  asm volatile("" : : "r"(byte));
}

/// Asks for each line of so many bytes, if a line begins at the first one; else perhaps not for the
/// last line.
[[gnu::always_inline]] inline void prefetch_range(const void* from, std::size_t bytes) {
  const auto* line = static_cast<const std::byte*>(from);
  for (const std::byte* end = line + bytes; line < end; line += kCacheLine) {
    prefetch(line);
  }
}

/// Asks for all of an object, likewise.
template <typename Object>
[[gnu::always_inline]] inline void prefetch_all(const Object* object) {
  prefetch_range(object, sizeof(Object));
}

} // namespace weir::frame
