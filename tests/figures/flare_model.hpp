// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Flare's model of a switch with K cores (SC'21 §4 to §6): bandwidth and memory of each method to
/// share buffers, for dense data.

#include <cstdint>

namespace weir::figures::flare {

/// Which sum of L, 2L, …, CL equation (2) of the paper divides by C: the printed L(C-1)/2, or the
/// correct mean L(C+1)/2.
enum class Mean : std::uint8_t { printed, corrected };

enum class Sharing : std::uint8_t { buffers, tree };

struct Design {
  Sharing sharing = Sharing::buffers;
  double buffers = 1; ///< B: buffers that share one block's packets
  double cores = 1;   ///< S: cores that may fold packets of one block
  Mean mean = Mean::printed;
};

/// Cycles a core spends on a packet of a tensor of `bytes`: τ.
double service_cycles(const Design& design, double bytes);

/// Bits per second.
double bandwidth(const Design& design, double bytes);

/// Packets that wait for a core or are on one: Q.
double waiting_packets(const Design& design, double bytes);
double queued_packets(const Design& design, double bytes);

/// Bytes of buffers that hold unfinished blocks: R.
double working_memory(const Design& design, double bytes);

/// The smallest tensor, doubling from a packet, from which a longer one is no faster; in bytes.
double full_rate_from(const Design& design);

} // namespace weir::figures::flare
