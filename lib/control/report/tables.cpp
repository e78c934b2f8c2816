// SPDX-License-Identifier: BSD-3-Clause
#include "report/tables.hpp"

#include "report/table_shapes.hpp"
#include "stage/graph.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir::report {

using ring::RingSpec;
using stage::ConnectionSnapshot;
using stage::RingSnapshot;

namespace {

constexpr std::size_t kBarWidth = 30;

double milliseconds(std::uint64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

template <typename Reason, std::size_t Count>
Table reasons_table(const TableShape& shape, const std::array<std::uint64_t, Count>& counts) {
  Table table(shape);
  for (std::size_t i = 0; i < Count; ++i) {
    const auto reason = static_cast<Reason>(i);
    if (counts[i] != 0) {
      table.rows.push_back({std::string(name_of(reason)), counts[i], std::string(text_of(reason))});
    }
  }
  return table;
}

std::string_view name_of_state(conn::ConnectionState state) {
  switch (state) {
  case conn::ConnectionState::unclassified:
    return "hello waits";
  case conn::ConnectionState::plain:
    return "plain";
  case conn::ConnectionState::announced:
    return "announced";
  case conn::ConnectionState::foreign:
    return "foreign";
  case conn::ConnectionState::barred:
    return "barred";
  case conn::ConnectionState::live:
    return "live";
  case conn::ConnectionState::dead:
    return "dead";
  }
  return "unknown";
}

std::string_view state_of(const conn::ChildStatus& child) {
  if (child.connected) {
    return child.waiting_hellos == 0 ? "connected" : "connected, next hello waits";
  }
  return child.waiting_hellos == 0 ? "no hello" : "hello waits";
}

std::string bar(std::uint64_t count, std::uint64_t most) {
  const std::size_t length = most == 0 ? 0 : (count * kBarWidth + most - 1) / most;
  return std::string(length, '#');
}

} // namespace

Table drops_table(const frame::FrameCounters& frames) {
  return reasons_table<DropReason>(tables::kDrops, frames.dropped);
}

Table graph_table(const frame::FrameCounters& frames) {
  Table table(tables::kGraph);
  for (const stage::StageRow& row : stage::kGraph) {
    std::string next;
    for (const stage::StageRow& other : stage::kGraph) {
      if (row.next.has(other.id)) {
        next += (next.empty() ? "" : ", ") + std::string(other.name);
      }
    }
    std::uint64_t drops = 0;
    for (std::size_t reason = 0; reason < kDropReasons; ++reason) {
      drops += row.drops.has(static_cast<DropReason>(reason)) ? frames.dropped[reason] : 0;
    }
    table.rows.push_back({std::string(row.name), std::string(row.file), next, drops});
  }
  return table;
}

Table foreign_table(const frame::FrameCounters& frames) {
  return reasons_table<ForeignReason>(tables::kForeign, frames.foreign);
}

Table accounting_table(const stage::Accounting& accounting) {
  const frame::FrameCounters& frames = accounting.frames;
  Table table(tables::kAccounting);
  table.rows.push_back({frames.received, frames.originated, frames.forwarded, frames.consumed,
                        frames.all_dropped(), accounting.held, accounting.queued,
                        std::string(accounting.balances() ? "yes" : "no")});
  return table;
}

Table rings_table(const ring::RingSet& set, std::span<const RingSnapshot> rings) {
  Table table(tables::kRings);
  for (const RingSnapshot& ring : rings) {
    const RingSpec& spec = set.rings()[ring.ring].spec();
    const auto connected = static_cast<std::uint64_t>(
        std::count_if(ring.children.begin(), ring.children.end(),
                      [](const conn::ChildStatus& child) { return child.connected; }));
    table.rows.push_back(
        {std::uint64_t{spec.id}, std::uint64_t{spec.world()}, std::uint64_t{spec.window},
         std::uint64_t{spec.mtu},
         ring.incarnation ? fmt::format("{}", ring.incarnation->epoch) : std::string("-"),
         connected, ring.counters.hellos, ring.counters.slots_completed,
         std::uint64_t{ring.filling}, ring.held, ring.counters.results,
         ring.counters.cached_results, ring.counters.reduced_bytes,
         ring.draining_ms ? Cell(*ring.draining_ms / 1000) : Cell(std::string("-"))});
  }
  return table;
}

Table ring_queue_table(const RingSpec& spec, const RingSnapshot& ring) {
  Table table(tables::kRingQueue);
  const stage::LineSnapshot& line = ring.line;
  table.rows.push_back({spec.tenant.empty() ? std::string("-") : spec.tenant,
                        line.rate == 0 ? Cell(std::string("-")) : Cell(line.rate), line.waiting,
                        line.counters.waited, line.counters.queue_full, line.counters.over_rate});
  return table;
}

Table members_table(const RingSpec& spec, const RingSnapshot& ring) {
  Table table(tables::kMembers);
  for (std::uint16_t rank = 0; rank < ring.children.size(); ++rank) {
    const conn::ChildStatus& child = ring.children[rank];
    table.rows.push_back({std::uint64_t{rank}, wire::to_string(spec.members[rank].ip),
                          std::string(state_of(child)), std::uint64_t{child.qp},
                          child.newest_message, child.packets});
  }
  return table;
}

Table recovery_table(const RingSnapshot& ring) {
  Table table(tables::kRecovery);
  const std::size_t ranks = ring.children.size();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const recovery::FlowCounters& sent = ring.children[rank].recovery;
    const stage::LinkLosses lost = stage::losses_of(ring, rank);
    const auto late = static_cast<std::uint16_t>(rank);
    const bool is_waited_for = std::ranges::count(ring.waited_for, late) != 0;
    table.rows.push_back(
        {std::uint64_t{rank}, lost.from, lost.to, sent.naks, sent.rnr_naks, sent.swallowed,
         sent.resent, sent.kept_alive + sent.hellos_kept_alive,
         is_waited_for ? fmt::format("{:.1f}", milliseconds(ring.waiting_ns)) : std::string("-")});
  }
  return table;
}

Table ring_drops_table(const RingSnapshot& ring) {
  return reasons_table<DropReason>(tables::kRingDrops, ring.counters.dropped);
}

Table slot_time_table(const RingSnapshot& ring) {
  return histogram_table(tables::kSlotTime, ring.counters.slot_time_ns);
}

Table stuck_table(const RingSpec& spec, std::span<const slot::StuckSlot> slots) {
  Table table(tables::kStuck);
  table.note = fmt::format("ring {}: the unfinished slots that have waited longest", spec.id);
  for (const slot::StuckSlot& slot : slots) {
    table.rows.push_back({slot.message, std::uint64_t{slot.packet}, milliseconds(slot.waiting_ns),
                          fmt::format("{}", fmt::join(slot.missing, ","))});
  }
  return table;
}

namespace {

std::string awaited_of(const RingSpec& spec, const stage::SenderSnapshot& sender,
                       std::uint64_t now_ns) {
  const recovery::Flow& flow = sender.flow;
  switch (flow.awaited(now_ns)) {
  case recovery::Awaited::end_of_wait:
    return fmt::format("the end of its RNR wait, in {:.1f} ms",
                       milliseconds(flow.hushed_until - now_ns));
  case recovery::Awaited::repeat:
  case recovery::Awaited::lost_packet:
    return fmt::format("PSN {} again", flow.next_in);
  case recovery::Awaited::acknowledgement:
    return fmt::format("rank {} to acknowledge PSN {} to {}", spec.successor(sender.child),
                       flow.unacknowledged, wire::psn_add(flow.next_out, -1));
  case recovery::Awaited::next_packet:
    return fmt::format("its next packet, PSN {}", flow.next_in);
  }
  return {};
}

std::string milliseconds_ago(std::uint64_t then_ns, std::uint64_t now_ns) {
  return fmt::format("{:.1f}", milliseconds(now_ns - then_ns));
}

} // namespace

Table waited_for_table(const RingSpec& spec, const stage::StuckSnapshot& stuck) {
  Table table(tables::kWaitedFor);
  for (const stage::SenderSnapshot& sender : stuck.waited_for) {
    const recovery::Flow& flow = sender.flow;
    const std::string ip = wire::to_string(spec.members[sender.child].ip);
    if (!sender.status.connected) {
      table.rows.push_back(
          {std::uint64_t{sender.child}, ip, "-", "-", "its hello", std::uint64_t{0}, "-"});
      continue;
    }
    table.rows.push_back({std::uint64_t{sender.child}, ip, std::to_string(sender.status.qp),
                          std::to_string(stuck.now.ms() - sender.status.last_seen),
                          awaited_of(spec, sender, stuck.now.ns), std::uint64_t{flow.asks},
                          flow.asks == 0 ? "-" : milliseconds_ago(flow.asked_at, stuck.now.ns)});
  }
  return table;
}

Table connections_table(std::span<const ConnectionSnapshot> connections) {
  Table table(tables::kConnections);
  for (const ConnectionSnapshot& row : connections) {
    const conn::Connection& connection = row.connection;
    const bool is_ring = connection.state == conn::ConnectionState::live ||
                         connection.state == conn::ConnectionState::dead;
    table.rows.push_back({std::uint64_t{connection.pair}, std::uint64_t{connection.qp},
                          std::string(name_of_state(connection.state)),
                          row.ring_id ? std::to_string(*row.ring_id) : std::string("-"),
                          is_ring ? fmt::format("{}", connection.child) : std::string("-"),
                          connection.packets, row.idle_ms});
  }
  return table;
}

Table histogram_table(const TableShape& shape, const frame::Histogram& histogram) {
  Table table(shape);
  const std::uint64_t most = *std::max_element(histogram.counts.begin(), histogram.counts.end());
  for (std::size_t bucket = 0; bucket < histogram.counts.size(); ++bucket) {
    const std::uint64_t count = histogram.counts[bucket];
    if (count != 0) {
      const std::uint64_t from = bucket == 0 ? 0 : std::uint64_t{1} << (bucket - 1);
      const std::uint64_t to = frame::Histogram::most_of(bucket);
      table.rows.push_back({from, to, count, bar(count, most)});
    }
  }
  return table;
}

} // namespace weir::report
