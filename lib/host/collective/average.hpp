// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "weir/ina.hpp"

#include <cstdint>
#include <span>

namespace weir::host {

/// Divides each element, which is a sum over `world` ranks, by that number: f32 and f64 with one
/// rounding to nearest, f16, bf16 and f8 in f32 and then rounded; integers are cut toward 0. Every
/// rank gets the same bits, whatever its floating-point mode.
void make_average(std::span<std::uint8_t> sums, DataType type, std::uint16_t world);

} // namespace weir::host
