// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <unistd.h>

namespace weir {

/// From the kernel: nobody can guess them.
template <std::size_t kBytes>
std::array<std::uint8_t, kBytes> random_bytes() {
  static_assert(kBytes <= 256); // getentropy's limit
  std::array<std::uint8_t, kBytes> bytes;
  if (getentropy(bytes.data(), bytes.size()) != 0) {
    throw std::runtime_error("the kernel gives no random bytes");
  }
  return bytes;
}

/// The same as one number of the type's, any of it.
template <typename Number>
Number random_as() {
  return std::bit_cast<Number>(random_bytes<sizeof(Number)>());
}

/// From `least` to `most`, each as likely as the others.
inline std::uint32_t random_number(std::uint32_t least, std::uint32_t most) {
  const std::uint64_t range = std::uint64_t{most} - least + 1;
  // Of 64 bits the rest is so small a part that no number is noticeably more likely.
  return static_cast<std::uint32_t>(least + random_as<std::uint64_t>() % range);
}

} // namespace weir
