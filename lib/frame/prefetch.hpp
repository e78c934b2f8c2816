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

/// Asks for all lines of an object that begins with one.
template <typename Object>
[[gnu::always_inline]] inline void prefetch_all(const Object* object) {
  for (std::size_t at = 0; at < sizeof(Object); at += kCacheLine) {
    prefetch(reinterpret_cast<const std::byte*>(object) + at);
  }
}

} // namespace weir::frame
