// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The parts of pipeline_bench. Each measures the switch's own lcores over net_ring ports, with
/// prepared frames that do not fit the cache.

#include "measurement.hpp"

namespace weir::bench {

/// One lcore, run to completion: time per frame, compared with macswap, reading and BareSwitch on
/// the same frames.
void measure_pipeline(const Options& options);

/// The time of each stage: the same stages, each called for a whole burst.
void measure_stages(const Options& options);

/// From the last contribution's arrival to the last result on the wire.
void measure_latency(const Options& options);

/// Sending one result to all ranks: written into each frame by the kernel, as the switch does, or
/// referred to by a chain of segments.
void measure_emission(const Options& options);

/// One lcore and several, in the useful placements of their roles, with one ring and with many.
void measure_scaling(const Options& options);
void measure_job(const Options& options);

/// One lcore with more frames than it serves: the time of a frame in fair turns of the rings
/// (stage::FairQueue), compared with the order of arrival.
void measure_overload(const Options& options);

/// A ring beside another one that folds by a slow operator.
void measure_neighbours(const Options& options);

/// A region's multicast and pull, compared with a ring's calls, and a ring beside a region that
/// floods.
void measure_region(const Options& options);

/// Frames of no ring, alone and beside a busy ring.
void measure_forwarding(const Options& options);

} // namespace weir::bench
