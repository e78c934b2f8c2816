// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <unistd.h>

namespace weir::host {

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

} // namespace weir::host
