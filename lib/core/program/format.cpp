// SPDX-License-Identifier: BSD-3-Clause
#include "program/format.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace weir::program {
namespace {

constexpr std::array<FormatRow, kFormats> kRows{{
    {"f32", 32, Kind::floating, Lane::f32},         {"f64", 64, Kind::floating, Lane::f64},
    {"i16", 16, Kind::signed_integer, Lane::i16},   {"i32", 32, Kind::signed_integer, Lane::i32},
    {"u32", 32, Kind::unsigned_integer, Lane::u32}, {"i64", 64, Kind::signed_integer, Lane::i64},
    {"u64", 64, Kind::unsigned_integer, Lane::u64}, {"f16", 16, Kind::floating, Lane::f32},
    {"bf16", 16, Kind::floating, Lane::f32},        {"f8e4m3", 8, Kind::floating, Lane::f32},
    {"f8e5m2", 8, Kind::floating, Lane::f32},       {"f6e2m3", 6, Kind::floating, Lane::f32},
    {"f6e3m2", 6, Kind::floating, Lane::f32},       {"f4e2m1", 4, Kind::floating, Lane::f32},
    {"mxint8", 8, Kind::floating, Lane::f32},       {"i8", 8, Kind::signed_integer, Lane::i16},
    {"u8", 8, Kind::unsigned_integer, Lane::u32},   {"u16", 16, Kind::unsigned_integer, Lane::u32},
    {"e8m0", 8, Kind::floating, Lane::f32},
}};

} // namespace

const FormatRow& row_of(Format format) {
  return kRows[static_cast<std::size_t>(format)];
}

std::optional<Format> format_named(std::string_view name) {
  const auto* const row = std::ranges::find(kRows, name, &FormatRow::name);
  return row == kRows.end() ? std::nullopt
                            : std::optional(static_cast<Format>(row - kRows.begin()));
}

} // namespace weir::program
