// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The parts of pipeline_bench. Each measures the switch's own lcores over net_ring ports, with
/// frames that were made beforehand and do not fit the cache.

#include "measurement.hpp"

namespace weir::bench {

/// One lcore, run to completion: time per frame, beside macswap of the same frames.
void measure_pipeline(const Options& options);

/// Where the pipeline's time goes: the same stages, called one after the other for whole bursts.
void measure_stages(const Options& options);

/// From the last contribution's arrival to the last result on the wire.
void measure_latency(const Options& options);

/// Sending one result to all ranks: written into each frame by the summation, as the switch does,
/// or referred to by a chain of segments.
void measure_emission(const Options& options);

/// One lcore and several, in the placements of their roles that make sense, with one ring and with
/// many.
void measure_scaling(const Options& options);

/// Frames that no ring knows, alone and beside a busy ring.
void measure_forwarding(const Options& options);

} // namespace weir::bench
