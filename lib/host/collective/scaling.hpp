// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "weir/ina.hpp"

#include <array>
#include <cstdint>
#include <span>

namespace weir::host {

/// The host's own step before or after a sum. f32 and f64 are rounded once, to nearest; f16, bf16
/// and f8 are computed in f32 and then rounded. Every rank gets the same bits from the same
/// numbers, whatever its floating-point mode. `data` may stand at any address.

/// Divides each element, which is a sum over `world` ranks, by that number. Integers are cut toward
/// 0.
void make_average(std::span<std::uint8_t> data, DataType type, std::uint16_t world);

/// One element of a call's type, in its first bytes.
using Factor = std::array<std::uint8_t, 8>;

/// Multiplies each element by the factor. Integers wrap around.
void multiply(std::span<std::uint8_t> data, DataType type, const Factor& factor);

} // namespace weir::host
