// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace weir::test {

/// Whether the address or the thread sanitizer is built in: by gcc's macros or clang's.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kIsSanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kIsSanitized = false;
#endif

/// How many of `all` rounds of a random test are tried. A sanitizer makes each several times
/// slower, and sees what is wrong with memory in a part of them; where none is, all are tried.
constexpr unsigned rounds(unsigned all) {
  return kIsSanitized ? all / 4 : all;
}

} // namespace weir::test
