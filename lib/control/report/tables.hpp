// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Makes tables of snapshots of the switch. Pure functions.

#include "report/report.hpp"
#include "ring/ring_set.hpp"
#include "stage/snapshot.hpp"

#include <span>

namespace weir::report {

/// Each drop reason with a count above 0, and its meaning.
Table drops_table(const frame::FrameCounters& frames);
/// The stages of stage::kGraph. A reason that two stages share is counted at both.
Table graph_table(const frame::FrameCounters& frames);
Table foreign_table(const frame::FrameCounters& frames);

/// Protocol I6 in one row: received + originated = forwarded + consumed + dropped + held + queued,
/// and whether it holds.
Table accounting_table(const stage::Accounting& accounting);

/// `set` says what the rings' indices mean.
Table rings_table(const ring::RingSet& set, std::span<const stage::RingSnapshot> rings);
/// Of the one ring.
Table ring_queue_table(const ring::RingSpec& spec, const stage::RingSnapshot& ring);
Table members_table(const ring::RingSpec& spec, const stage::RingSnapshot& ring);

/// Which link loses, and which rank the ring waits for. A packet is lost from a rank when the
/// switch has asked that rank for it, and lost to a rank when its result had to be sent again.
Table recovery_table(const stage::RingSnapshot& ring);
Table ring_drops_table(const stage::RingSnapshot& ring);
Table slot_time_table(const stage::RingSnapshot& ring);
Table stuck_table(const ring::RingSpec& spec, std::span<const slot::StuckSlot> slots);
/// The ranks that the ring waits for: when their last packet came, and what is to happen next.
Table waited_for_table(const ring::RingSpec& spec, const stage::StuckSnapshot& stuck);
Table connections_table(std::span<const stage::ConnectionSnapshot> connections);

/// Rows "from … to …, count, share as a bar", for buckets that are not empty.
Table histogram_table(const TableShape& shape, const frame::Histogram& histogram);

} // namespace weir::report
