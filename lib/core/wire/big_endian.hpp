// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace weir::wire {

/// An unsigned integer of `Bytes` bytes as it lies on the wire. It has no alignment and no implicit
/// conversions.
template <std::unsigned_integral Host, std::size_t Bytes = sizeof(Host)>
class BigEndian {
  static_assert(Bytes <= sizeof(Host));

 public:
  BigEndian() = default;

  constexpr explicit BigEndian(Host value) { set(value); }

  constexpr Host get() const { return get(std::make_index_sequence<Bytes>()); }

  constexpr void set(Host value) { set(value, std::make_index_sequence<Bytes>()); }

  constexpr bool operator==(const BigEndian&) const = default;

 private:
  // Written out byte by byte. Compilers turn this into one load or store and a byte swap; they do
  // not do so for a loop.
  template <std::size_t... I>
  constexpr Host get(std::index_sequence<I...>) const {
    return static_cast<Host>(
        ((static_cast<std::uint64_t>(bytes_[I]) << 8 * (Bytes - 1 - I)) | ...));
  }

  template <std::size_t... I>
  constexpr void set(Host value, std::index_sequence<I...>) {
    ((bytes_[I] = static_cast<std::uint8_t>(value >> 8 * (Bytes - 1 - I))), ...);
  }

  std::array<std::uint8_t, Bytes> bytes_{};
};

// Single bytes are plain std::uint8_t: an 8-bit Host would shift out of range in get().
using be16 = BigEndian<std::uint16_t>;
using be24 = BigEndian<std::uint32_t, 3>;
using be32 = BigEndian<std::uint32_t>;
using be64 = BigEndian<std::uint64_t>;

static_assert(sizeof(be16) == 2 && sizeof(be24) == 3 && sizeof(be32) == 4 && sizeof(be64) == 8);

/// Views bytes as a wire struct. Every wire struct has alignment 1, so any address is valid. The
/// caller has checked that sizeof(Struct) bytes are there.
template <typename Struct>
const Struct& view_as(const std::uint8_t* bytes) {
  static_assert(alignof(Struct) == 1);
  return *reinterpret_cast<const Struct*>(bytes);
}

template <typename Struct>
Struct& view_as(std::uint8_t* bytes) {
  static_assert(alignof(Struct) == 1);
  return *reinterpret_cast<Struct*>(bytes);
}

} // namespace weir::wire
