// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What DPDK 22.11's driver net_af_xdp wants of the switch (drivers/net/af_xdp/rte_eth_af_xdp.c).

#include "config/config.hpp"

#include <cstdint>
#include <string>
#include <string_view>

struct rte_mempool;

namespace weir::control {

bool is_af_xdp(const config::PortConfig& port);

/// Frames that the driver may have of such a port. It gives the kernel 2048 to receive into for
/// each queue, whatever rx_descriptors says. It never gives these back, not even when it closes the
/// port.
std::uint64_t frames_in_af_xdp(const config::PortConfig& port);

/// Why the driver cannot share these frames with the kernel, in words. Empty when it can: each
/// frame with its buffer fits into a page, and all are in one piece of memory.
std::string why_af_xdp_cannot_use(const rte_mempool& pool);

/// Its errors do not tell the cause (errno is EINVAL for all of them), so this tells the usual
/// ones.
inline constexpr std::string_view kAfXdpNeeds =
    "net_af_xdp needs CAP_NET_ADMIN, CAP_NET_RAW, CAP_IPC_LOCK and CAP_SYS_ADMIN, and an interface "
    "with native XDP (veth or a NIC, no tap or bridge) that has no XDP program yet";

} // namespace weir::control
