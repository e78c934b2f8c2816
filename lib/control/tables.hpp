// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Snapshots of the switch as tables. Pure functions: what they are given is what they show.

#include "conn/ring_directory.hpp"
#include "control/report.hpp"
#include "dataplane/snapshot.hpp"

#include <span>

namespace weir::control {

/// Each reason that has counted something, and what it means.
Table drops_table(const dataplane::FrameCounters& frames);
Table foreign_table(const dataplane::FrameCounters& frames);

/// I6 as one row: received = forwarded + consumed + dropped + held + queued, and whether it holds.
Table accounting_table(const dataplane::Accounting& accounting);

Table rings_table(std::span<const conn::RingSpec> specs,
                  std::span<const dataplane::RingSnapshot> rings);
Table members_table(const conn::RingSpec& spec, const dataplane::RingSnapshot& ring);
Table ring_drops_table(const dataplane::RingSnapshot& ring);
Table slot_time_table(const dataplane::RingSnapshot& ring);
Table stuck_table(const conn::RingSpec& spec, std::span<const agg::StuckSlot> slots);
Table connections_table(std::span<const conn::RingSpec> specs,
                        std::span<const dataplane::ConnectionSnapshot> connections);

/// Rows "from … to …, count, share as a bar" for the buckets in use.
Table histogram_table(std::string name, const std::string& unit,
                      const dataplane::Histogram& histogram);

} // namespace weir::control
