// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Tables of what only a running switch has: ports, lcores, tenants, memory. A column is defined
/// here and nowhere else, as in tables.hpp.

#include "capture/capture.hpp"
#include "config/difference.hpp"
#include "control/gate_log.hpp"
#include "control/leases.hpp"
#include "control/loop_judge.hpp"
#include "control/memory.hpp"
#include "control/operator_admin.hpp"
#include "control/port.hpp"
#include "control/region_admission.hpp"
#include "control/region_seen.hpp"
#include "control/snapshots.hpp"
#include "control/tenants.hpp"
#include "frame/trace.hpp"
#include "report/tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string>
#include <utility>

namespace weir::report {

/// "all", "red", "ring 7 of red".
std::string owners_in_words(const control::OperatorSeen& seen);

struct PortRow {
  const control::Port& port;
  control::PortInformation information;
};

struct PortCountsRow {
  const control::Port& port;
  frame::PortCounters counters;
  control::DeviceLosses losses;

  const frame::ClassCounters& ring() const { return counters.sent(frame::TrafficClass::ring); }

  const frame::ClassCounters& other() const { return counters.sent(frame::TrafficClass::other); }
};

struct PortBridgeRow {
  const control::Port& port;
  config::YesNo bridge; // as the configuration says now
  control::PortLoops loops;
  std::string other; // the other port of the loop
  std::uint64_t now_ns;

  /// "yes", "no", "loop".
  std::string_view state() const;
  /// Until it opens again; 0: it is not closed.
  double closed_s() const;
};

struct PortStatisticRow {
  const control::Port& port;
  std::string name;
  std::uint64_t value;
};

struct PortSteeringRow {
  const control::Port& port;
  control::SteeringState state;

  std::string_view rx_steering() const;
};

struct StationRow {
  control::Station station;
  std::string port;
};

struct TenantRow {
  const control::TenantUse& use;
  stage::LineSnapshot lines; // of its rings together

  std::string hosts() const;
};

struct RegionMemberRow {
  const control::RegionSeen& region;
  std::size_t member;

  const region::MemberSpec& spec() const { return region.spec.members[member]; }

  const control::RegionSeen::Member& state() const { return region.members[member]; }
};

/// "forming", "open", "ended".
std::string_view name_of(region::State state);

/// Why it has ended, or what it waits for; empty: nothing.
std::string note_of(const control::RegionSeen& region);
/// "-" of one that has ended: another one may have its place.
Cell place_cell(const control::RegionSeen& region);

struct MemoryRow {
  const control::MemoryPlan& plan;
  std::uint32_t free_mbufs;
};

struct TraceRow {
  struct Place {
    std::uint32_t ring = 0; // its id
    std::string rank;       // as ring::name_of() has it
  };

  const frame::TraceRecord& record;
  std::uint64_t start_ns; // of the first record
  std::string ingress;
  std::string egress;
  Place place; // if the record names a slot

  std::string_view stage() const;
  std::string event() const;
  /// Both where the record names a slot.
  std::string_view rank() const;
  std::string of_slot(std::uint64_t value) const;
};

double busy_percent(const control::LcoreSnapshot& lcore);
/// ISO 8601, in UTC.
std::string utc_text(std::uint64_t time_ns);
std::string text_of(const capture::Status& status);

/// A limit, or that there is none.
template <typename Number>
Cell limit_cell(const std::optional<Number>& limit) {
  return limit ? to_cell(*limit) : to_cell(kNone);
}

namespace tables {

inline constexpr TableOf kPortInfo{
    "port_info",
    "",
    column("port", "port", [](const PortRow& p) { return p.port.name(); }),
    column("device", "device", [](const PortRow& p) { return p.port.config().device; }),
    column("driver", "driver", [](const PortRow& p) { return p.information.driver; }),
    column("mac", "MAC", [](const PortRow& p) { return p.information.mac; }),
    column("link", "link", [](const PortRow& p) { return p.information.link; }),
    column("mtu", "MTU", [](const PortRow& p) { return p.information.mtu; }),
    column("rx_queues", "rx queues", [](const PortRow& p) { return p.port.config().rx_queues; }),
    column("numa_node", "NUMA node",
           [](const PortRow& p) { return std::to_string(p.information.numa_node); }),
    column("promiscuous", "promiscuous", [](const PortRow& p) {
      return std::string_view(p.information.promiscuous ? "on" : "off");
    })};

inline constexpr TableOf kPortStats{
    "port_stats",
    "",
    column("port", "port", [](const PortCountsRow& p) { return p.port.name(); }),
    column("up", "up", [](const PortCountsRow& p) { return p.port.is_down() ? 0 : 1; }),
    column("rx_packets", "rx packets",
           [](const PortCountsRow& p) { return p.counters.rx_packets.get(); }),
    column("rx_bytes", "rx bytes",
           [](const PortCountsRow& p) { return p.counters.rx_bytes.get(); }),
    column("rx_missed", "rx missed", [](const PortCountsRow& p) { return p.losses.rx_missed; }),
    column("rx_errors", "rx errors", [](const PortCountsRow& p) { return p.losses.rx_errors; }),
    column("tx_packets", "tx packets",
           [](const PortCountsRow& p) { return p.ring().packets + p.other().packets; }),
    column("tx_bytes", "tx bytes",
           [](const PortCountsRow& p) { return p.ring().bytes + p.other().bytes; }),
    column("tx_errors", "tx errors", [](const PortCountsRow& p) { return p.losses.tx_errors; }),
    column("tx_ring_packets", "of rings",
           [](const PortCountsRow& p) { return p.ring().packets.get(); }),
    column("tx_ring_dropped", "dropped",
           [](const PortCountsRow& p) { return p.ring().dropped.get(); }),
    column("tx_other_packets", "others",
           [](const PortCountsRow& p) { return p.other().packets.get(); }),
    column("tx_other_dropped", "dropped",
           [](const PortCountsRow& p) { return p.other().dropped.get(); })};

inline constexpr TableOf kPortXstats{
    "port_xstats", "",
    column("port", "port", [](const PortStatisticRow& p) { return p.port.name(); }),
    column("name", "name", [](const PortStatisticRow& p) { return std::string_view(p.name); }),
    column("value", "value", [](const PortStatisticRow& p) { return p.value; })};

inline constexpr TableOf kPortSteering{
    "port_steering", "pairs of ring neighbours that may arrive at the port",
    column("port", "port", [](const PortSteeringRow& p) { return p.port.name(); }),
    column("rx_steering", "rx steering", [](const PortSteeringRow& p) { return p.rx_steering(); }),
    column("steered", "pairs steered", [](const PortSteeringRow& p) { return p.state.steered; }),
    column("refused", "refused", [](const PortSteeringRow& p) { return p.state.refused; }),
    // Their workers poll none of the port's.
    column("without_queue", "without queue",
           [](const PortSteeringRow& p) { return p.state.without_queue; }),
    column("reason", "the driver's reason", [](const PortSteeringRow& p) {
      return p.state.reason.empty() ? kNone : std::string_view(p.state.reason);
    })};

inline constexpr TableOf kPortBridge{
    "port_bridge",
    "",
    column("port", "port", [](const PortBridgeRow& p) { return p.port.name(); }),
    column("bridge", "bridge", [](const PortBridgeRow& p) { return p.state(); }),
    column("loop_with", "loop with",
           [](const PortBridgeRow& p) { return std::string_view(p.other); }),
    column("closed_s", "closed for s", [](const PortBridgeRow& p) { return p.closed_s(); }),
    column("loops", "loops", [](const PortBridgeRow& p) { return p.loops.loops; }),
    column("wrong_probes", "probes of a wrong cable",
           [](const PortBridgeRow& p) { return p.loops.wrong_cable; })};

inline constexpr TableOf kTenants{
    "tenants", "",
    column("tenant", "tenant",
           [](const TenantRow& t) { return std::string_view(t.use.tenant.name); }),
    column("rings", "rings", [](const TenantRow& t) { return t.use.rings.size(); }),
    column("most_rings", "most", [](const TenantRow& t) { return limit_cell(t.use.tenant.rings); }),
    column("memory_mib", "MiB",
           [](const TenantRow& t) { return static_cast<double>(t.use.bytes) / control::kMiB; }),
    column("most_memory_mib", "most",
           [](const TenantRow& t) { return limit_cell(t.use.tenant.memory_mib); }),
    column("neighbours", "neighbours", [](const TenantRow& t) { return t.use.neighbours; }),
    column("most_neighbours", "most",
           [](const TenantRow& t) { return limit_cell(t.use.tenant.neighbours); }),
    column("packets_per_second", "packets a second",
           [](const TenantRow& t) { return limit_cell(t.use.tenant.packets_per_second); }),
    column("waiting", "waiting", [](const TenantRow& t) { return t.lines.waiting; }),
    column("waited", "waited", [](const TenantRow& t) { return t.lines.counters.waited; }),
    column("queue_full", "dropped: queue full",
           [](const TenantRow& t) { return t.lines.counters.queue_full; }),
    column("over_rate", "dropped: its rate",
           [](const TenantRow& t) { return t.lines.counters.over_rate; }),
    // Blocks of addresses.
    column("hosts", "hosts", [](const TenantRow& t) { return t.hosts(); })};

inline constexpr TableOf kTenantRegions{
    "tenant_regions",
    "what tenants have of the regions' rooms",
    column("tenant", "tenant",
           [](const control::RegionShare& s) { return std::string_view(s.tenant); }),
    column("regions", "regions", [](const control::RegionShare& s) { return s.now.regions; }),
    column("most_regions", "most", [](const control::RegionShare& s) { return s.most.regions; }),
    column("members", "members", [](const control::RegionShare& s) { return s.now.members; }),
    column("most_members", "most", [](const control::RegionShare& s) { return s.most.members; }),
    column("frames", "frames", [](const control::RegionShare& s) { return s.now.frames; }),
    column("most_frames", "most", [](const control::RegionShare& s) { return s.most.frames; })};

inline constexpr TableOf kRegions{
    "regions", "",
    column("region", "region", [](const control::RegionSeen& r) { return r.spec.id; }),
    column("tenant", "tenant",
           [](const control::RegionSeen& r) {
             return r.tenant.empty() ? kNone : std::string_view(r.tenant);
           }),
    column("place", "place", [](const control::RegionSeen& r) { return place_cell(r); }),
    column("state", "state", [](const control::RegionSeen& r) { return name_of(r.state); }),
    column("members", "members", [](const control::RegionSeen& r) { return r.members.size(); }),
    column("heard", "heard", [](const control::RegionSeen& r) { return r.heard(); }),
    column("bytes", "bytes", [](const control::RegionSeen& r) { return r.spec.bytes; }),
    column("mtu", "MTU", [](const control::RegionSeen& r) { return r.spec.mtu; }),
    column("window", "window", [](const control::RegionSeen& r) { return r.spec.window; }),
    column("loopback", "loopback",
           [](const control::RegionSeen& r) {
             return r.spec.loopback == region::Loopback::on ? std::string_view("yes")
                                                            : std::string_view("no");
           }),
    column("held", "held", [](const control::RegionSeen& r) { return r.held; }),
    column("accepted", "accepted",
           [](const control::RegionSeen& r) { return r.counters.accepted; }),
    column("copies", "copies", [](const control::RegionSeen& r) { return r.counters.copies; }),
    column("again", "again", [](const control::RegionSeen& r) { return r.counters.again; }),
    column("answers", "answers", [](const control::RegionSeen& r) { return r.counters.answers; }),
    column("asked", "asked", [](const control::RegionSeen& r) { return r.counters.asked; }),
    // Notifications of congestion: of targets, those of them that nobody was told of, and to
    // sources.
    column("congested", "CNPs", [](const control::RegionSeen& r) { return r.counters.congested; }),
    column("suppressed", "suppressed",
           [](const control::RegionSeen& r) { return r.counters.suppressed; }),
    column("notified", "CNPs sent",
           [](const control::RegionSeen& r) { return r.counters.notified; }),
    column("views", "views", [](const control::RegionSeen& r) { return r.views(); }),
    column("entries", "entries",
           [](const control::RegionSeen& r) { return region::entries_of(r.spec); }),
    column("gathering", "gathering", [](const control::RegionSeen& r) { return r.entries_used; }),
    column("reads", "READs", [](const control::RegionSeen& r) { return r.counters.reads; }),
    column("folds", "folds", [](const control::RegionSeen& r) { return r.counters.folds; }),
    column("folds_again", "again",
           [](const control::RegionSeen& r) { return r.counters.folds_again; }),
    column("member_reads", "asked of members",
           [](const control::RegionSeen& r) { return r.counters.member_reads; }),
    column("member_reads_again", "again",
           [](const control::RegionSeen& r) { return r.counters.member_reads_again; }),
    // Why it has ended, or who has not said hello.
    column("note", "note", [](const control::RegionSeen& r) { return note_of(r); })};

inline constexpr TableOf kRegionQueue{
    "region_queue", "packets of members that wait for their turn at the worker",
    column("region", "region", [](const control::RegionSeen& r) { return r.spec.id; }),
    column("place", "place", [](const control::RegionSeen& r) { return place_cell(r); }),
    // Its tenant's, at the regions' worker.
    column("packets_per_second", "packets a second",
           [](const control::RegionSeen& r) {
             return r.line.rate == 0 ? to_cell(kNone) : to_cell(r.line.rate);
           }),
    column("waiting", "waiting", [](const control::RegionSeen& r) { return r.line.waiting; }),
    column("waited", "waited", [](const control::RegionSeen& r) { return r.line.counters.waited; }),
    column("queue_full", "dropped: queue full",
           [](const control::RegionSeen& r) { return r.line.counters.queue_full; }),
    column("over_rate", "dropped: tenant's rate",
           [](const control::RegionSeen& r) { return r.line.counters.over_rate; })};

inline constexpr Reasons kRegionEnds{"region_ends",
                                     "regions that have ended since the switch was started"};

inline constexpr TableOf kRegionMembers{
    "region_members",
    "members: frames of theirs that are held, copies that they have not acknowledged, READs of "
    "theirs that wait",
    column("region", "region", [](const RegionMemberRow& m) { return m.region.spec.id; }),
    column("place", "place", [](const RegionMemberRow& m) { return place_cell(m.region); }),
    column("member", "member", [](const RegionMemberRow& m) { return m.member; }),
    column("ip", "address", [](const RegionMemberRow& m) { return wire::to_string(m.spec().ip); }),
    column("queue_pair", "QP", [](const RegionMemberRow& m) { return m.spec().queue_pair; }),
    column("hello", "hello",
           [](const RegionMemberRow& m) {
             return m.state().has_said_hello ? std::string_view("yes") : std::string_view("no");
           }),
    column("held", "held", [](const RegionMemberRow& m) { return m.state().held; }),
    column("unacknowledged", "unacknowledged",
           [](const RegionMemberRow& m) { return m.state().unacknowledged; }),
    column("reads", "READs", [](const RegionMemberRow& m) { return m.state().reads; }),
    // Without a sign of life while it owes these.
    column("waited_for_ms", "waited for (ms)", [](const RegionMemberRow& m) {
      return static_cast<double>(m.state().waited_for_ns) / 1e6;
    })};

inline constexpr TableOf kOperators{
    "operators", "operators of the users' own",
    column("name", "name", [](const control::OperatorSeen& o) { return std::string_view(o.name); }),
    column("digest", "digest",
           [](const control::OperatorSeen& o) { return program::to_string(o.digest); }),
    // Tenants, and rings that they came with.
    column("owners", "for", [](const control::OperatorSeen& o) { return owners_in_words(o); }),
    column("price", "ns a KiB and rank", [](const control::OperatorSeen& o) { return o.price; }),
    column(
        "rings", "rings",
        [](const control::OperatorSeen& o) { return fmt::format("{}", fmt::join(o.rings, " ")); }),
    column("packets", "packets", [](const control::OperatorSeen& o) { return o.packets; }),
    column("flagged", "with a flag", [](const control::OperatorSeen& o) { return o.flagged; }),
    // A kernel of Weir's, or the loops that run the text.
    column("by", "folded by", [](const control::OperatorSeen& o) {
      return std::string_view(o.disagrees    ? "loops: its kernel disagrees"
                              : o.has_kernel ? "kernel"
                                             : "loops");
    })};

inline constexpr TableOf kGate{
    "gate", "processes between the network and the control service, since the switch was started",
    column("process", "process", [](const ReasonRow& g) { return g.reason; }),
    column("count", "ended", [](const ReasonRow& g) { return g.count; }),
    column("meaning", "meaning", [](const ReasonRow& g) { return g.meaning; })};

inline constexpr TableOf kReclaimed{
    "reclaimed",
    "",
    column("ring", "ring", [](const control::Reclaimed& r) { return r.ring; }),
    column("time", "time (UTC)", [](const control::Reclaimed& r) { return utc_text(r.time_ns); }),
    column("reason", "reason",
           [](const control::Reclaimed& r) { return name_of(r.grounds.reason); }),
    column("silent_s", "silent s",
           [](const control::Reclaimed& r) { return r.grounds.silence_ns / 1'000'000'000; }),
    column("frames", "frames", [](const control::Reclaimed& r) { return r.frames; }),
    column("fate", "the ring", [](const control::Reclaimed& r) { return name_of(r.fate); })};

inline constexpr Reasons kReclaims{"reclaims",
                                   "rings that the switch took back, since it was started"};

inline constexpr TableOf kFdb{
    "fdb",
    "",
    column("mac", "MAC", [](const StationRow& s) { return to_string(s.station.mac); }),
    column("port", "port", [](const StationRow& s) { return std::string_view(s.port); }),
    column("age_s", "age s",
           [](const StationRow& s) { return static_cast<double>(s.station.age_ms) / 1000.0; }),
    column("pins", "pinned by", [](const StationRow& s) { return s.station.pins; }),
    column("kind", "kind", [](const StationRow& s) {
      return std::string_view(s.station.is_tied ? "static" : "learnt");
    })};

inline constexpr TableOf kLcores{
    "lcores", "", column("lcore", "lcore", [](const control::LcoreSnapshot& l) { return l.id; }),
    column("roles", "roles",
           [](const control::LcoreSnapshot& l) { return std::string_view(l.roles); }),
    column("numa_node", "NUMA node",
           [](const control::LcoreSnapshot& l) { return std::to_string(l.numa_node); }),
    column("rings", "rings", [](const control::LcoreSnapshot& l) { return l.rings; }),
    column("rounds", "rounds", [](const control::LcoreSnapshot& l) { return l.rounds.rounds; }),
    column("idle_rounds", "idle rounds",
           [](const control::LcoreSnapshot& l) { return l.rounds.idle_rounds; }),
    column("starved_rounds", "without mbufs",
           [](const control::LcoreSnapshot& l) { return l.rounds.starved_rounds; }),
    column("reductions_for_others", "reductions for others",
           [](const control::LcoreSnapshot& l) { return l.rounds.reductions_for_others; }),
    // Frames for other lcores' workers.
    column("handed_over", "handed over",
           [](const control::LcoreSnapshot& l) { return l.rounds.handed_over; }),
    column("busy_percent", "busy %",
           [](const control::LcoreSnapshot& l) { return busy_percent(l); }),
    column("received", "received",
           [](const control::LcoreSnapshot& l) { return l.frames.received; }),
    column("forwarded", "forwarded",
           [](const control::LcoreSnapshot& l) { return l.frames.forwarded; }),
    column("consumed", "consumed",
           [](const control::LcoreSnapshot& l) { return l.frames.consumed; }),
    column("dropped", "dropped",
           [](const control::LcoreSnapshot& l) { return l.frames.all_dropped(); }),
    column("held", "held", [](const control::LcoreSnapshot& l) { return l.held; })};

inline constexpr Buckets kRxBurst{"rx_burst", "from packets", "to packets"};
inline constexpr Buckets kStoodStill{"stood_still", "from ns", "to ns",
                                     "each time that an lcore stood still for a question"};

inline constexpr TableOf kMemory{
    "memory",
    "",
    column("mbufs", "mbufs", [](const MemoryRow& m) { return m.plan.mbufs; }),
    column("free_mbufs", "free", [](const MemoryRow& m) { return m.free_mbufs; }),
    column("data_room", "data room", [](const MemoryRow& m) { return m.plan.data_room; }),
    column(
        "pool_mib", "pool MiB",
        [](const MemoryRow& m) { return static_cast<double>(m.plan.pool_bytes) / control::kMiB; }),
    column("ring_mib", "rings MiB", [](const MemoryRow& m) {
      return static_cast<double>(m.plan.ring_bytes) / control::kMiB;
    })};

inline constexpr TableOf kCapture{
    "capture",
    "",
    column("of", "of", [](const capture::Status& c) { return std::string_view(c.what); }),
    column("file", "file", [](const capture::Status& c) { return std::string_view(c.file); }),
    column("state", "state", [](const capture::Status& c) { return text_of(c); }),
    column("count", "wanted", [](const capture::Status& c) { return c.count; }),
    column("written", "written", [](const capture::Status& c) { return c.written; }),
    column("queue_full", "left out: queue full",
           [](const capture::Status& c) { return c.left_out; })};

inline constexpr TableOf kChanges{
    "changes",
    "",
    column("key", "key", [](const config::Change& c) { return c.place; }),
    column("from", "running", [](const config::Change& c) { return c.from; }),
    column("to", "file", [](const config::Change& c) { return c.to; }),
    column("effect", "effect", [](const config::Change& c) { return name_of(c.effect); }),
    column("meaning", "meaning", [](const config::Change& c) { return text_of(c.effect); })};

inline constexpr TableOf kTrace{
    "trace",
    "",
    column("time_us", "time us",
           [](const TraceRow& t) {
             return static_cast<double>(t.record.now_ns - t.start_ns) / 1000.0;
           }),
    column("ingress", "from", [](const TraceRow& t) { return std::string_view(t.ingress); }),
    column("stage", "stage", [](const TraceRow& t) { return t.stage(); }),
    column("event", "event", [](const TraceRow& t) { return t.event(); }),
    column("egress", "to", [](const TraceRow& t) { return std::string_view(t.egress); }),
    column("ring", "ring", [](const TraceRow& t) { return t.of_slot(t.place.ring); }),
    column("rank", "rank", [](const TraceRow& t) { return t.rank(); }),
    column("message", "message", [](const TraceRow& t) { return t.of_slot(t.record.message); }),
    column("packet", "packet", [](const TraceRow& t) { return t.of_slot(t.record.packet); }),
    column("qp", "to QP", [](const TraceRow& t) { return t.record.qp; }),
    column("psn", "PSN", [](const TraceRow& t) { return t.record.psn; }),
    column("bytes", "bytes", [](const TraceRow& t) { return t.record.length; })};

} // namespace tables
} // namespace weir::report
