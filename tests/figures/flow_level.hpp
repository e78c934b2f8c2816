// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// All-reduce as phases of fluid flows that share links max-min fairly, without packets and queues.
/// It gives the results of the formulas in NetReduce's appendix A without using them.

#include "figure.hpp"

#include <cstdint>
#include <vector>

namespace weir::figures {

struct Flow {
  std::vector<std::uint32_t> links; ///< crossed at the same time
  double bytes = 0;
};

/// Flows that start together after `latency`. The next phase starts when all have ended.
struct Phase {
  double latency = 0; ///< seconds
  std::vector<Flow> flows;
  std::uint32_t times = 1; ///< how often the phase is run in a row
};

/// Seconds until the last of the flows has ended. Rates by link in bytes/s. Throws
/// std::invalid_argument for a link that is not there, a rate of 0 or a flow without links.
double seconds_of(const std::vector<double>& rates, const std::vector<Flow>& flows);

/// Seconds for all phases, one after the other. The mutation halves the rate of link 0, or runs the
/// first phase twice.
double seconds_of(std::vector<double> rates, const std::vector<Phase>& phases, Mutation mutation);

/// The largest sum of bytes/s that enter one node when every flow has the rate of its first link.
/// `entered[l]` is the node at the end of link l.
double busiest_node(const std::vector<double>& rates, const std::vector<std::uint32_t>& entered,
                    const std::vector<Flow>& flows);

} // namespace weir::figures
