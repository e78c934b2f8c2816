// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What DPDK 22.11's driver net_af_xdp wants of the switch (drivers/net/af_xdp/rte_eth_af_xdp.c).

#include "config/config.hpp"

#include <cstdint>
#include <string>

struct rte_mempool;

namespace weir::control {

/// Whether its driver shares the packet buffers with the kernel, for good.
bool keeps_buffers(const config::PortConfig& port);

/// Frames that the driver may have of such a port. It gives the kernel 2048 to receive into for
/// each queue, whatever rx_descriptors says. It never gives these back, not even when it closes the
/// port.
std::uint64_t frames_in_af_xdp(const config::PortConfig& port);

/// Why the driver cannot share these frames with the kernel, in words. Empty when it can: each
/// frame with its buffer fits into a page, and all are in one piece of memory.
std::string why_af_xdp_cannot_use(const rte_mempool& pool);

} // namespace weir::control
