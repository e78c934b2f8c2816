// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Limits of a ring; that of its number of ranks is in weir/ina.hpp. The switch's configuration,
/// the host library and the programs use the same ones.

#include <array>
#include <cstdint>

namespace weir {

inline constexpr std::uint32_t kMaxWindow = 1024;           // messages under way
inline constexpr std::uint32_t kMaxMessageBytes = 1U << 30; // INA header included
/// Bytes of payload in a packet (IBTA §12.6.2: path MTU).
inline constexpr std::array<std::uint64_t, 5> kPathMtus{256, 512, 1024, 2048, 4096};

} // namespace weir
