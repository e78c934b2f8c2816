// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Tables of what the stages count, without EAL: for weir-replay too. A column is defined here and
/// nowhere else; the prompt, JSON, telemetry and the metrics print it.

#include "conn/hello_difference.hpp"
#include "report/typed_table.hpp"
#include "ring/ring_set.hpp"
#include "stage/snapshot.hpp"
#include "wire/address.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::report {

// What tables have rows of, and words of them that need more than a line.

struct RingRow {
  const ring::Ring& of;
  const stage::RingSnapshot& ring;
  const ring::RingSpec& spec = of.spec();

  std::uint64_t connected() const;
  Cell epoch() const;
};

/// Of a child of this switch, which is a rank unless the ring is one of a tree, or of its parent.
struct RankRow {
  const ring::Ring& of;
  const stage::RingSnapshot& ring;
  std::uint16_t sender;

  const conn::ChildStatus& child() const {
    return of.is_parent(sender) ? *ring.parent : ring.children[sender];
  }

  const recovery::FlowCounters& sent() const { return child().recovery; }

  stage::LinkLosses lost() const {
    return of.is_parent(sender) ? stage::losses_above(ring) : stage::losses_of(ring, sender);
  }

  std::string_view state() const;
  /// For how long the ring's oldest packet has waited for the rank, or for the total.
  Cell waited_for_ms() const;
};

/// Of a rank that the ring waits for.
struct LateRow {
  const ring::Ring& of;
  const stage::SenderSnapshot& sender;
  frame::Instant now;

  bool is_connected() const { return sender.status.connected; }

  Cell last_packet_ms() const;
  std::string waits_for() const;
  Cell asked_ms() const;
};

/// An unfinished slot.
struct StuckRow {
  const ring::Ring& of;
  const slot::StuckSlot& slot;

  std::string missing() const;
};

/// Another switch of a ring's tree, or a rank that is a child beside it.
struct TreeRow {
  const ring::Ring& of;
  std::uint16_t sender;
  std::string port; // its name; empty: any

  std::string switch_name() const;
};

/// Of a hello that was refused: one thing that its sender has otherwise.
struct RefusedRow {
  const conn::RefusedHello& hello;
  const conn::ToldHello& told;
  const conn::HelloDifference& difference;
  std::string port; // its name
  std::uint64_t now_ns;
};

struct ReasonRow {
  std::string_view reason;
  std::uint64_t count;
  std::string_view meaning;
};

struct BucketRow {
  std::uint64_t from;
  std::uint64_t to;
  std::uint64_t count;
  std::uint64_t most; // of all buckets

  std::string bar() const;
};

struct StageCounts {
  std::string_view stage;
  std::string_view file;
  std::string next;
  std::uint64_t drops;
};

double milliseconds(std::uint64_t ns);
/// A rank by its number, a switch below by its ranks as "2-3", the switch above as "parent".
std::string name_of(const ring::Ring& ring, std::uint16_t sender);
/// The same, with a number for a rank.
Cell cell_of(const ring::Ring& ring, std::uint16_t sender);
std::string_view name_of_state(conn::ConnectionState state);

namespace tables {

struct Reasons : TableOf<ReasonRow, 3> {
  constexpr explicit Reasons(std::string_view its_name, std::string_view its_note = {})
      : TableOf(its_name, its_note,
                column("reason", "reason", [](const ReasonRow& r) { return r.reason; }),
                column("count", "count", [](const ReasonRow& r) { return r.count; }),
                column("meaning", "meaning", [](const ReasonRow& r) { return r.meaning; })) {}
};

struct Buckets : TableOf<BucketRow, 4> {
  constexpr Buckets(std::string_view its_name, std::string_view from, std::string_view to,
                    std::string_view its_note = {})
      : TableOf(its_name, its_note, column("from", from, [](const BucketRow& b) { return b.from; }),
                column("to", to, [](const BucketRow& b) { return b.to; }),
                column("count", "count", [](const BucketRow& b) { return b.count; }),
                column("bar", "share", [](const BucketRow& b) { return b.bar(); })) {}
};

inline constexpr TableOf kRings{
    "rings", "", column("ring", "ring", [](const RingRow& r) { return r.spec.id; }),
    column("world", "ranks", [](const RingRow& r) { return r.spec.world(); }),
    column("window", "window", [](const RingRow& r) { return r.spec.window; }),
    column("mtu", "mtu", [](const RingRow& r) { return r.spec.mtu; }),
    column("lcore", "lcore", [](const RingRow& r) { return r.ring.lcore; }),
    column("epoch", "epoch", [](const RingRow& r) { return r.epoch(); }),
    column("connected", "connected", [](const RingRow& r) { return r.connected(); }),
    column("hellos", "hellos", [](const RingRow& r) { return r.ring.counters.hellos; }),
    column("slots_completed", "slots done",
           [](const RingRow& r) { return r.ring.counters.slots_completed; }),
    column("filling", "filling", [](const RingRow& r) { return r.ring.filling; }),
    column("held", "held frames", [](const RingRow& r) { return r.ring.held; }),
    column("results", "results", [](const RingRow& r) { return r.ring.counters.results; }),
    column("cached_results", "cached",
           [](const RingRow& r) { return r.ring.counters.cached_results; }),
    column("reduced_bytes", "bytes in",
           [](const RingRow& r) { return r.ring.counters.reduced_bytes; }),
    column("by_operator", "by operators",
           [](const RingRow& r) { return r.ring.counters.by_operator; }),
    column("flagged", "with a flag", [](const RingRow& r) { return r.ring.counters.flagged; }),
    // Once more for each time.
    column("told", "told of the end", [](const RingRow& r) { return r.ring.counters.told; }),
    // For so long; "-": it does not.
    column("draining_s", "drains s", [](const RingRow& r) {
      return r.ring.draining_ms ? to_cell(*r.ring.draining_ms / 1000) : to_cell(kNone);
    })};

inline constexpr TableOf kMembers{
    "members",
    "",
    column("rank", "rank", [](const RankRow& r) { return cell_of(r.of, r.sender); }),
    column("ip", "address", [](const RankRow& r) { return to_string(r.of.source_of(r.sender)); }),
    column("state", "state", [](const RankRow& r) { return r.state(); }),
    column("qp", "to QP", [](const RankRow& r) { return r.child().qp; }),
    column("newest_message", "newest message",
           [](const RankRow& r) { return r.child().newest_message; }),
    column("packets", "packets", [](const RankRow& r) { return r.child().packets; })};

/// Which link loses, and which rank the ring waits for. A packet is lost from a rank when the
/// switch has asked that rank for it, and lost to a rank when its result had to be sent again.
inline constexpr TableOf kRecovery{
    "recovery",
    "",
    column("rank", "rank", [](const RankRow& r) { return cell_of(r.of, r.sender); }),
    column("lost_from", "lost from it", [](const RankRow& r) { return r.lost().from; }),
    column("lost_to", "lost to it", [](const RankRow& r) { return r.lost().to; }),
    column("naks", "NAKs sent", [](const RankRow& r) { return r.sent().naks; }),
    column("rnr_naks", "RNR NAKs sent", [](const RankRow& r) { return r.sent().rnr_naks; }),
    column("swallowed", "repeats swallowed", [](const RankRow& r) { return r.sent().swallowed; }),
    column("resent", "results resent", [](const RankRow& r) { return r.sent().resent; }),
    column("kept_alive", "kept alive",
           [](const RankRow& r) { return r.sent().kept_alive + r.sent().hellos_kept_alive; }),
    column("waited_for_ms", "waited for ms", [](const RankRow& r) { return r.waited_for_ms(); })};

inline constexpr Reasons kRingDrops{"ring_drops"};
inline constexpr Buckets kSlotTime{"slot_time", "from ns", "to ns",
                                   "from a slot's first contribution to its last"};

inline constexpr TableOf kRingQueue{
    "ring_queue",
    "frames that wait for their turn at the worker; rings that share neighbours wait together",
    column("tenant", "tenant",
           [](const RingRow& r) {
             return r.spec.tenant.empty() ? kNone : std::string_view(r.spec.tenant);
           }),
    // Its tenant's, at the ring's worker.
    column("packets_per_second", "packets a second",
           [](const RingRow& r) {
             return r.ring.line.rate == 0 ? to_cell(kNone) : to_cell(r.ring.line.rate);
           }),
    column("waiting", "waiting", [](const RingRow& r) { return r.ring.line.waiting; }),
    column("waited", "waited", [](const RingRow& r) { return r.ring.line.counters.waited; }),
    column("queue_full", "dropped: queue full",
           [](const RingRow& r) { return r.ring.line.counters.queue_full; }),
    column("over_rate", "dropped: tenant's rate",
           [](const RingRow& r) { return r.ring.line.counters.over_rate; })};

inline constexpr TableOf kTree{
    "tree", "the switch's place in the ring's tree",
    column("rank", "ranks", [](const TreeRow& t) { return cell_of(t.of, t.sender); }),
    column("switch", "switch", [](const TreeRow& t) { return t.switch_name(); }),
    // "-": bound by the rank's hello.
    column("port", "port",
           [](const TreeRow& t) { return t.port.empty() ? kNone : std::string_view(t.port); })};

/// Who has the ring otherwise, and in what. Where there is nobody, the tree is as it should be.
inline constexpr TableOf kRefusedHellos{
    "refused_hellos",
    "",
    column("ring", "ring", [](const RefusedRow& r) { return r.hello.header.ring_id.get(); }),
    column("from", "from", [](const RefusedRow& r) { return std::string_view(r.told.hop); }),
    column("port", "port", [](const RefusedRow& r) { return std::string_view(r.port); }),
    column("reason", "reason", [](const RefusedRow& r) { return name_of(r.hello.reason); }),
    column("field", "differs in", [](const RefusedRow& r) { return r.difference.field; }),
    column("theirs", "theirs",
           [](const RefusedRow& r) { return std::string_view(r.difference.theirs); }),
    column("ours", "ours", [](const RefusedRow& r) { return std::string_view(r.difference.ours); }),
    column("count", "hellos", [](const RefusedRow& r) { return r.hello.count; }),
    column("last_ms", "last ms ago",
           [](const RefusedRow& r) { return (r.now_ns - r.hello.at_ns) / frame::kNsPerMs; })};

/// Of a ring with a switch above.
inline constexpr TableOf kUplink{
    "uplink", "to the switch above, and from it",
    column("climbs", "hellos sent", [](const RingRow& r) { return r.ring.counters.climbs; }),
    column("partial_sums", "partial sums sent",
           [](const RingRow& r) { return r.ring.counters.partial_sums; }),
    column("totals", "totals got", [](const RingRow& r) { return r.ring.counters.totals; })};
inline constexpr Buckets kTotalTime{"total_time", "from ns", "to ns",
                                    "from a partial sum's departure to its total"};

inline constexpr TableOf kStuck{
    "stuck",
    "",
    column("message", "message", [](const StuckRow& s) { return s.slot.message; }),
    column("packet", "packet", [](const StuckRow& s) { return s.slot.packet; }),
    column("waiting_ms", "waiting ms",
           [](const StuckRow& s) { return milliseconds(s.slot.waiting_ns); }),
    column("missing", "waits for ranks", [](const StuckRow& s) { return s.missing(); })};

/// The ranks that the ring waits for: when their last packet came, and what is to happen next.
inline constexpr TableOf kWaitedFor{
    "waited_for", "",
    column("rank", "rank", [](const LateRow& l) { return cell_of(l.of, l.sender.child); }),
    column("ip", "address",
           [](const LateRow& l) { return to_string(l.of.source_of(l.sender.child)); }),
    column("qp", "to QP",
           [](const LateRow& l) {
             return l.is_connected() ? std::to_string(l.sender.status.qp) : std::string(kNone);
           }),
    column("last_packet_ms", "last packet ms ago",
           [](const LateRow& l) { return l.last_packet_ms(); }),
    column("waits_for", "its connection waits for", [](const LateRow& l) { return l.waits_for(); }),
    // By the switch, to go back.
    column("asked", "asked",
           [](const LateRow& l) { return l.is_connected() ? l.sender.flow.asks : 0; }),
    column("asked_ms", "last asked ms ago", [](const LateRow& l) { return l.asked_ms(); })};

inline constexpr TableOf kConnections{
    "connections",
    "",
    column("pair", "pair", [](const stage::ConnectionSnapshot& c) { return c.connection.pair; }),
    column("qp", "to QP", [](const stage::ConnectionSnapshot& c) { return c.connection.qp; }),
    column("state", "state",
           [](const stage::ConnectionSnapshot& c) { return name_of_state(c.connection.state); }),
    column("ring", "ring",
           [](const stage::ConnectionSnapshot& c) {
             return c.ring_id ? std::to_string(*c.ring_id) : std::string(kNone);
           }),
    column("rank", "rank",
           [](const stage::ConnectionSnapshot& c) {
             return c.sender.empty() ? kNone : std::string_view(c.sender);
           }),
    column("packets", "packets",
           [](const stage::ConnectionSnapshot& c) { return c.connection.packets; }),
    column("idle_ms", "idle ms", [](const stage::ConnectionSnapshot& c) { return c.idle_ms; })};

inline constexpr Reasons kDrops{"drops"};
inline constexpr Reasons kForeign{
    "foreign", "frames with an INA header that belongs to no ring here: forwarded untouched"};

/// Protocol I6 in one row: received + originated = forwarded + consumed + dropped + held + queued,
/// and whether it holds.
inline constexpr TableOf kAccounting{
    "accounting",
    "",
    column("received", "received", [](const stage::Accounting& a) { return a.frames.received; }),
    column("originated", "+ originated",
           [](const stage::Accounting& a) { return a.frames.originated; }),
    column("forwarded", "= forwarded",
           [](const stage::Accounting& a) { return a.frames.forwarded; }),
    column("consumed", "+ consumed", [](const stage::Accounting& a) { return a.frames.consumed; }),
    column("dropped", "+ dropped",
           [](const stage::Accounting& a) { return a.frames.all_dropped(); }),
    column("held", "+ held", [](const stage::Accounting& a) { return a.held; }),
    column("queued", "+ queued", [](const stage::Accounting& a) { return a.queued; }),
    column("balances", "balances", [](const stage::Accounting& a) {
      return std::string_view(a.balances() ? "yes" : "no");
    })};

inline constexpr TableOf kGraph{
    "graph",
    "a drop reason that two stages give counts at both",
    column("stage", "stage", [](const StageCounts& s) { return s.stage; }),
    column("file", "file", [](const StageCounts& s) { return s.file; }),
    column("next", "hands on to", [](const StageCounts& s) { return std::string_view(s.next); }),
    column("drops", "drops", [](const StageCounts& s) { return s.drops; })};

} // namespace tables

// Tables whose rows are parts of one value.

/// Each drop reason with a count above 0, and its meaning.
Table drops_table(const frame::FrameCounters& frames);
Table foreign_table(const frame::FrameCounters& frames);
Table ring_drops_table(const stage::RingSnapshot& ring);
/// The stages of stage::kGraph. A reason that two stages share is counted at both.
Table graph_table(const frame::FrameCounters& frames);
/// `set` says what the rings' indices mean.
Table rings_table(const ring::RingSet& set, std::span<const stage::RingSnapshot> rings);
/// A row for each child and the parent, kMembers' or kRecovery's.
std::vector<RankRow> ranks_of(const RingRow& ring);
Table stuck_table(const ring::RingSpec& spec, std::span<const slot::StuckSlot> slots);
Table waited_for_table(const ring::RingSpec& spec, const stage::StuckSnapshot& stuck);
/// For buckets that are not empty.
Table histogram_table(const tables::Buckets& shape, const frame::Histogram& histogram);

} // namespace weir::report
