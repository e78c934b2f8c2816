// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Structs of the C API that begin with their size, so that programs and libraries of different
/// versions understand one another.

#include "host/api/c_errors.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weir::host::c {

/// The size that a caller has set in its struct.
template <typename Struct>
std::size_t size_of(std::string_view what, const Struct* given) {
  constexpr std::size_t kLongest = 4096; // a size that was forgotten may be any number
  const std::size_t size = object_at(given, what).size;
  if (size < sizeof(size) || size > kLongest) {
    throw std::invalid_argument(fmt::format(
        "{}.size: found {}; allowed: the struct's sizeof, here {}", what, size, sizeof(Struct)));
  }
  return size;
}

/// Writes as much as the caller's struct holds. A longer one comes from a newer header; what this
/// library does not know becomes 0 there.
template <typename Struct>
void write_struct(Struct* to, std::size_t size, Struct values) {
  values.size = size;
  std::memcpy(to, &values, std::min(size, sizeof(Struct)));
  if (size > sizeof(Struct)) {
    std::memset(reinterpret_cast<std::uint8_t*>(to) + sizeof(Struct), 0, size - sizeof(Struct));
  }
}

/// The caller's options, with the defaults where its struct is shorter. A longer struct comes from
/// a newer header; what this library does not know must be 0 there.
template <typename Options>
Options read_struct(std::string_view what, const Options* given, Options defaults) {
  const std::size_t size = size_of(what, given);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(given);
  const auto is_zero = [](std::uint8_t byte) { return byte == 0; };
  if (size > sizeof(Options) && !std::all_of(bytes + sizeof(Options), bytes + size, is_zero)) {
    throw std::invalid_argument(
        fmt::format("{}: found a field behind byte {}, which version {} of the library does not "
                    "know; allowed: 0 there",
                    what, sizeof(Options), weir_version()));
  }
  std::memcpy(&defaults, given, std::min(size, sizeof(Options)));
  return defaults;
}

/// A C program may have stored any number, which C++ may not load as the enumeration.
template <typename Option>
unsigned number_of(const Option& option) {
  unsigned number = 0;
  static_assert(sizeof(number) == sizeof(option));
  std::memcpy(&number, &option, sizeof(number));
  return number;
}

} // namespace weir::host::c
