// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace weir::network {

/// Virtual nanoseconds since the run began.
using Time = std::uint64_t;
inline constexpr Time kNoTime = UINT64_MAX;
inline constexpr Time kMillisecond = 1'000'000;

} // namespace weir::network
