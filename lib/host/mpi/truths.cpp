// SPDX-License-Identifier: BSD-3-Clause
#include "host/mpi/truths.hpp"

#include <cstdint>
#include <cstring>

namespace weir::mpi {
namespace {

/// Calls `visit` with an integer of so many bytes.
template <typename Visit>
void with_integer(std::size_t bytes, Visit&& visit) {
  switch (bytes) {
  case 1:
    return visit(std::uint8_t{});
  case 2:
    return visit(std::uint16_t{});
  case 4:
    return visit(std::uint32_t{});
  default:
    return visit(std::uint64_t{});
  }
}

} // namespace

std::vector<std::byte> truths_of(const std::byte* integers, std::size_t count, std::size_t bytes) {
  std::vector<std::byte> truths(count);
  with_integer(bytes, [&](auto integer) {
    for (std::size_t k = 0; k < count; ++k) {
      std::memcpy(&integer, integers + k * sizeof integer, sizeof integer);
      truths[k] = std::byte{integer != 0};
    }
  });
  return truths;
}

void put_truths(const std::vector<std::byte>& truths, std::byte* integers, std::size_t bytes) {
  with_integer(bytes, [&](auto integer) {
    for (std::size_t k = 0; k < truths.size(); ++k) {
      integer = static_cast<decltype(integer)>(truths[k]);
      std::memcpy(integers + k * sizeof integer, &integer, sizeof integer);
    }
  });
}

} // namespace weir::mpi
