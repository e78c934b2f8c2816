// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "weir/ina.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace weir::fabric {

/// Names a rank's tensor.
struct TensorKey {
  std::uint32_t ring = 0;
  std::uint32_t nonce = 0; // of the run
  std::uint32_t tensor = 0;
  std::uint16_t rank = 0;
};

/// The rank's data, a hash of its key and the element's number: any i32; any f32 from 2^-12 to
/// 2^12, sometimes a zero, an infinity, a NaN or a subnormal.
void fill(std::span<std::uint8_t> data, DataType type, const TensorKey& key);

/// docs/protocol.md §2, "Arithmetic", for i32 and f32 with sum, min and max: a plain loop over the
/// ranks.
std::vector<std::uint8_t> fold(std::size_t bytes, DataType type, Operation operation, TensorKey key,
                               std::uint16_t world);

} // namespace weir::fabric
