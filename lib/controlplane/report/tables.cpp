// SPDX-License-Identifier: BSD-3-Clause
#include "report/tables.hpp"

#include "ring/sender_name.hpp"
#include "stage/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace weir::report {
namespace {

constexpr std::size_t kBarWidth = 30;

template <typename Reason, std::size_t kCount>
Table reasons_table(const tables::Reasons& shape, const std::array<std::uint64_t, kCount>& counts) {
  Table table(shape);
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto reason = static_cast<Reason>(i);
    if (counts[i] != 0) {
      shape.add(table, {name_of(reason), counts[i], text_of(reason)});
    }
  }
  return table;
}

std::string milliseconds_ago(std::uint64_t then_ns, std::uint64_t now_ns) {
  return fmt::format("{:.1f}", milliseconds(now_ns - then_ns));
}

} // namespace

double milliseconds(std::uint64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

std::string name_of(const ring::Ring& ring, std::uint16_t sender) {
  return ring::name_of(ring.spec(), sender);
}

Cell cell_of(const ring::Ring& ring, std::uint16_t sender) {
  return ring.is_rank(sender) ? to_cell(ring.rank_of(sender)) : Cell(name_of(ring, sender));
}

std::string StuckRow::missing() const {
  std::string list;
  for (const std::uint16_t child : slot.missing) {
    list += (list.empty() ? "" : ",") + name_of(of, child);
  }
  return list;
}

std::string TreeRow::switch_name() const {
  const std::string name = ring::switch_name_of(of.spec(), sender);
  return name.empty() ? std::string(kNone) : name;
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

std::uint64_t RingRow::connected() const {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(ring.children, &conn::ChildStatus::connected));
}

Cell RingRow::epoch() const {
  return ring.incarnation ? std::to_string(ring.incarnation->epoch) : std::string(kNone);
}

std::string_view RankRow::state() const {
  if (of.is_parent(sender) && !child().connected) {
    return ring.climbing_ns ? "hello climbs" : "no hello to climb";
  }
  if (child().connected) {
    return child().waiting_hellos == 0 ? "connected" : "connected, next hello waits";
  }
  return child().waiting_hellos == 0 ? "no hello" : "hello waits";
}

Cell RankRow::waited_for_ms() const {
  std::optional<std::uint64_t> waited_ns;
  if (of.is_parent(sender)) {
    waited_ns = ring.total_missing_ns;
  } else if (std::ranges::count(ring.waited_for, sender) != 0) {
    waited_ns = ring.waiting_ns;
  }
  return waited_ns ? fmt::format("{:.1f}", milliseconds(*waited_ns)) : std::string(kNone);
}

Cell LateRow::last_packet_ms() const {
  return is_connected() ? std::to_string(now.ms() - sender.status.last_seen) : std::string(kNone);
}

std::string LateRow::waits_for() const {
  const recovery::Flow& flow = sender.flow;
  if (!is_connected()) {
    return "its hello";
  }
  switch (flow.awaited(now.ns)) {
  case recovery::Awaited::end_of_wait:
    return fmt::format("the end of its RNR wait, in {:.1f} ms",
                       milliseconds(flow.hushed_until - now.ns));
  case recovery::Awaited::repeat:
  case recovery::Awaited::lost_packet:
    return fmt::format("PSN {} again", flow.next_in);
  case recovery::Awaited::acknowledgement:
    return fmt::format("rank {} to acknowledge PSN {} to {}",
                       of.spec().successor(of.rank_of(sender.child)), flow.unacknowledged,
                       wire::psn_add(flow.next_out, -1));
  case recovery::Awaited::next_packet:
    return fmt::format("its next packet, PSN {}", flow.next_in);
  }
  return {};
}

Cell LateRow::asked_ms() const {
  const bool was_asked = is_connected() && sender.flow.asks != 0;
  return was_asked ? milliseconds_ago(sender.flow.asked_at, now.ns) : std::string(kNone);
}

std::string BucketRow::bar() const {
  const std::size_t length = most == 0 ? 0 : (count * kBarWidth + most - 1) / most;
  return std::string(length, '#');
}

Table drops_table(const frame::FrameCounters& frames) {
  return reasons_table<DropReason>(tables::kDrops, frames.dropped);
}

Table foreign_table(const frame::FrameCounters& frames) {
  return reasons_table<ForeignReason>(tables::kForeign, frames.foreign);
}

Table ring_drops_table(const stage::RingSnapshot& ring) {
  return reasons_table<DropReason>(tables::kRingDrops, ring.counters.dropped);
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
    tables::kGraph.add(table, {row.name, row.file, next, drops});
  }
  return table;
}

Table rings_table(const ring::RingSet& set, std::span<const stage::RingSnapshot> rings) {
  Table table(tables::kRings);
  for (const stage::RingSnapshot& ring : rings) {
    tables::kRings.add(table, {set.rings()[ring.ring], ring});
  }
  return table;
}

std::vector<RankRow> ranks_of(const RingRow& row) {
  std::vector<RankRow> ranks;
  const std::size_t senders = row.ring.children.size() + (row.ring.parent ? 1 : 0);
  for (std::uint16_t sender = 0; sender < senders; ++sender) {
    ranks.push_back({row.of, row.ring, sender});
  }
  return ranks;
}

Table stuck_table(const ring::RingSpec& spec, std::span<const slot::StuckSlot> slots) {
  const ring::Ring ring(spec);
  Table table(tables::kStuck);
  for (const slot::StuckSlot& slot : slots) {
    tables::kStuck.add(table, {ring, slot});
  }
  table.note = fmt::format("ring {}: the unfinished slots that have waited longest", spec.id);
  return table;
}

Table waited_for_table(const ring::RingSpec& spec, const stage::StuckSnapshot& stuck) {
  const ring::Ring ring(spec);
  Table table(tables::kWaitedFor);
  for (const stage::SenderSnapshot& sender : stuck.waited_for) {
    tables::kWaitedFor.add(table, {ring, sender, stuck.now});
  }
  return table;
}

Table histogram_table(const tables::Buckets& shape, const frame::Histogram& histogram) {
  Table table(shape);
  const std::uint64_t most = *std::ranges::max_element(histogram.counts);
  for (std::size_t bucket = 0; bucket < histogram.counts.size(); ++bucket) {
    const std::uint64_t count = histogram.counts[bucket];
    if (count != 0) {
      const std::uint64_t from = bucket == 0 ? 0 : std::uint64_t{1} << (bucket - 1);
      shape.add(table, {from, frame::Histogram::most_of(bucket), count, most});
    }
  }
  return table;
}

} // namespace weir::report
