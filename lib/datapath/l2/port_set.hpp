// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <cstdint>

namespace weir::l2 {

/// A set of port indices. DPDK on Debian has 32 ports at most (RTE_MAX_ETHPORTS).
using PortSet = std::uint64_t;
inline constexpr std::uint16_t kMaxPorts = 64;

constexpr PortSet set_of(std::uint16_t port) {
  return PortSet{1} << port;
}

constexpr bool has(PortSet ports, std::uint16_t port) {
  return (ports >> port & 1) != 0;
}

/// Calls visit(std::uint16_t port) with each port of the set, in order.
template <typename Visitor>
constexpr void for_each_port(PortSet ports, Visitor&& visit) {
  for (; ports != 0; ports &= ports - 1) {
    visit(static_cast<std::uint16_t>(std::countr_zero(ports)));
  }
}

} // namespace weir::l2
