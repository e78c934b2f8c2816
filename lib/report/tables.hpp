// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Snapshots of the switch as tables. Pure functions: what they are given is what they show.

#include "report/report.hpp"
#include "ring/ring_set.hpp"
#include "stage/snapshot.hpp"

#include <span>

namespace weir::report {

/// Each reason that has counted something, and what it means.
Table drops_table(const frame::FrameCounters& frames);
/// The stages of stage::kGraph; a reason that two of them give counts at both.
Table graph_table(const frame::FrameCounters& frames);
Table foreign_table(const frame::FrameCounters& frames);

/// I6 as one row: received = forwarded + consumed + dropped + held + queued, and whether it holds.
Table accounting_table(const stage::Accounting& accounting);

Table rings_table(std::span<const ring::RingSpec> specs,
                  std::span<const stage::RingSnapshot> rings);
Table members_table(const ring::RingSpec& spec, const stage::RingSnapshot& ring);
Table ring_drops_table(const stage::RingSnapshot& ring);
Table slot_time_table(const stage::RingSnapshot& ring);
Table stuck_table(const ring::RingSpec& spec, std::span<const slot::StuckSlot> slots);
Table connections_table(std::span<const ring::RingSpec> specs,
                        std::span<const stage::ConnectionSnapshot> connections);

/// Rows "from … to …, count, share as a bar" for the buckets in use.
Table histogram_table(std::string name, const std::string& unit, const frame::Histogram& histogram);

} // namespace weir::report
