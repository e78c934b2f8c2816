// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <linux/filter.h>

namespace weir::host {

/// Queue pairs with consecutive numbers.
struct QueuePairRange {
  std::uint32_t first = 0; // 24 bits
  std::uint32_t count = 0; // 1 or more
};

/// A classic BPF program for a packet socket (Linux: Documentation/networking/filter.rst). It drops
/// what is no packet for them before the kernel copies it or wakes anybody: each group of a host
/// has a socket of its own on the same interface. It keeps frames with a VLAN tag and RoCEv1, into
/// which it does not look.
using QueuePairFilter = std::array<sock_filter, 22>;
QueuePairFilter filter_for(QueuePairRange queue_pairs);

} // namespace weir::host
