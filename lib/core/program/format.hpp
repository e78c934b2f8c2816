// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::program {

/// How a value lies in a payload. The first three kinds are lanes too (docs/operators.md).
enum class Format : std::uint8_t {
  f32,
  f64,
  i16,
  i32,
  u32,
  i64,
  u64,
  f16,
  bf16,
  f8e4m3,
  f8e5m2,
  f6e2m3,
  f6e3m2,
  f4e2m1,
  mxint8, // i8 x 2^-6
  i8,
  u8,
  u16,
  e8m0, // a power of two: of a block's scale alone
};

inline constexpr std::size_t kFormats = 19;

enum class Kind : std::uint8_t { floating, signed_integer, unsigned_integer };

/// What a step computes in. A row's number is its format's.
enum class Lane : std::uint8_t { f32, f64, i16, i32, u32, i64, u64 };

inline constexpr std::size_t kLanes = 7;

struct FormatRow {
  std::string_view name;
  unsigned bits = 0;
  Kind kind{};
  Lane lane{}; // in which it is read
};

const FormatRow& row_of(Format format);

inline const FormatRow& row_of(Lane lane) {
  return row_of(static_cast<Format>(lane));
}

inline unsigned bytes_of(Lane lane) {
  return row_of(lane).bits / 8;
}

inline bool is_float(Lane lane) {
  return row_of(lane).kind == Kind::floating;
}

std::optional<Format> format_named(std::string_view name);

} // namespace weir::program
