// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "weir/ina.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::fabric {

/// Names what a rank gives to a call.
struct DataKey {
  std::uint32_t ring = 0;
  std::uint32_t nonce = 0; // of the run
  std::uint32_t call = 0;
  std::uint16_t rank = 0;
};

/// The rank's data, a hash of its key and the place: any integers; any f16 and f8; f32, f64 and
/// bf16 from 2^-12 to 2^12, sometimes a zero, an infinity, a NaN or a subnormal. Whole elements.
void fill(std::span<std::uint8_t> data, DataType type, const DataKey& key);

using Tensors = std::vector<std::vector<std::uint8_t>>; // of equal length

/// docs/protocol.md §2, "Arithmetic": a plain loop over the tensors and the elements, one at a
/// time. Shares no code with lib/core/op.
std::vector<std::uint8_t> fold(DataType type, Operation operation, const Tensors& tensors);

} // namespace weir::fabric
