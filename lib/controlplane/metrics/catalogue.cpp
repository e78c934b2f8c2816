// SPDX-License-Identifier: BSD-3-Clause
#include "metrics/catalogue.hpp"

#include "control/leases.hpp"
#include "control/memory.hpp"
#include "report/switch_tables.hpp"
#include "weir/reasons.hpp"

#include <array>

namespace weir::metrics {
namespace {

using namespace report;

constexpr double kPerMilli = 1e-3;
constexpr double kPerNano = 1e-9;

template <typename Reason, std::size_t kCount>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kCount; ++i) {
    names.emplace_back(name_of(static_cast<Reason>(i)));
  }
  return names;
}

constexpr auto kDropReasonNames = names_of<DropReason, kDropReasons>;
constexpr auto kReclaimReasonNames = names_of<control::ReclaimReason, control::kReclaimReasons>;

/// Of region::End.
std::vector<std::string> region_ends() {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < region::kEnds; ++i) {
    names.emplace_back(control::name_of(static_cast<region::End>(i)));
  }
  return names;
}

constexpr auto kForeignReasonNames = names_of<ForeignReason, kForeignReasons>;

/// Where the rows of several metrics stand.
struct Rows {
  std::string_view question;
  const TableShape* table;
  std::string_view label = {};
  std::string_view within = {};
  Scope scope = Scope::whole_switch;
};

constexpr Rows kPortRows{"/weir/port/stats", &tables::kPortStats, "port"};
constexpr Rows kBridgeRows{"/weir/port/bridge", &tables::kPortBridge, "port"};
constexpr Rows kRingRows{"/weir/ring", &tables::kRings, "ring"};
constexpr Rows kUplinkRows{"/weir/ring", &tables::kUplink, "", "", Scope::each_ring_below_a_switch};
constexpr Rows kLineRows{"/weir/ring", &tables::kRingQueue, "", "", Scope::each_ring};
constexpr Rows kTenantRows{"/weir/tenants", &tables::kTenants, "tenant"};
constexpr Rows kShareRows{"/weir/tenants", &tables::kTenantRegions, "tenant"};
constexpr Rows kRegionRows{"/weir/region", &tables::kRegions, "place"};
constexpr Rows kRegionLineRows{"/weir/region", &tables::kRegionQueue, "place"};
constexpr Rows kMemberRows{"/weir/region", &tables::kRegionMembers, "member", "place"};
constexpr Rows kLcoreRows{"/weir/lcores", &tables::kLcores, "lcore"};

constexpr Metric of(const Rows& rows, Kind kind, std::string_view name, std::string_view help,
                    std::string_view value, double unit = 1.0, FixedLabel fixed = {}) {
  return {.name = name,
          .help = help,
          .kind = kind,
          .scope = rows.scope,
          .question = rows.question,
          .table = rows.table,
          .value = value,
          .unit = unit,
          .label = rows.label,
          .within = rows.within,
          .fixed = fixed};
}

constexpr Metric of_port(Kind kind, std::string_view name, std::string_view help,
                         std::string_view value, FixedLabel fixed = {}) {
  return of(kPortRows, kind, name, help, value, 1.0, fixed);
}

constexpr Metric of_bridge(Kind kind, std::string_view name, std::string_view help,
                           std::string_view value) {
  return of(kBridgeRows, kind, name, help, value);
}

constexpr Metric of_ring(Kind kind, std::string_view name, std::string_view help,
                         std::string_view value) {
  return of(kRingRows, kind, name, help, value);
}

constexpr Metric of_uplink(std::string_view name, std::string_view help, std::string_view value) {
  return of(kUplinkRows, Kind::counter, name, help, value);
}

constexpr Metric of_rank(Kind kind, std::string_view name, std::string_view help,
                         const TableShape& table, std::string_view value, FixedLabel fixed = {}) {
  return of({"/weir/ring", &table, "rank", "", Scope::each_ring}, kind, name, help, value, 1.0,
            fixed);
}

constexpr Metric of_line(Kind kind, std::string_view name, std::string_view help,
                         std::string_view value) {
  return of(kLineRows, kind, name, help, value);
}

constexpr Metric of_tenant(Kind kind, std::string_view name, std::string_view help,
                           std::string_view value, double unit = 1.0) {
  return of(kTenantRows, kind, name, help, value, unit);
}

constexpr Metric of_share(std::string_view name, std::string_view help, std::string_view value) {
  return of(kShareRows, Kind::gauge, name, help, value);
}

constexpr Metric of_region(Kind kind, std::string_view name, std::string_view help,
                           std::string_view value) {
  return of(kRegionRows, kind, name, help, value);
}

constexpr Metric of_region_line(Kind kind, std::string_view name, std::string_view help,
                                std::string_view value) {
  return of(kRegionLineRows, kind, name, help, value);
}

constexpr Metric of_member(std::string_view name, std::string_view help, std::string_view value,
                           double unit = 1.0) {
  return of(kMemberRows, Kind::gauge, name, help, value, unit);
}

constexpr Metric of_lcore(Kind kind, std::string_view name, std::string_view help,
                          std::string_view value) {
  return of(kLcoreRows, kind, name, help, value);
}

constexpr Metric of_switch(std::string_view name, std::string_view help, std::string_view question,
                           const TableShape& table, std::string_view value) {
  return of({question, &table}, Kind::gauge, name, help, value);
}

constexpr std::array kCatalogue{
    of_port(Kind::gauge, "weir_port_up",
            "1: the port has a link, or its device knows none; 0: it has none.", "up"),
    of_port(Kind::counter, "weir_port_receive_packets_total", "Packets that came in by the port.",
            "rx_packets"),
    of_port(Kind::counter, "weir_port_receive_bytes_total",
            "Their bytes, without preamble and FCS.", "rx_bytes"),
    of_port(Kind::counter, "weir_port_receive_missed_total",
            "Packets for which the device had no buffer.", "rx_missed"),
    of_port(Kind::counter, "weir_port_receive_errors_total",
            "Packets that the device found broken.", "rx_errors"),
    of_port(Kind::counter, "weir_port_transmit_bytes_total", "Bytes that left by the port.",
            "tx_bytes"),
    of_port(Kind::counter, "weir_port_transmit_errors_total",
            "Packets that the device did not send.", "tx_errors"),
    of_port(Kind::counter, "weir_port_transmit_packets_total", "Packets that left by the port.",
            "tx_ring_packets", {"class", "ring"}),
    of_port(Kind::counter, "weir_port_transmit_packets_total", "", "tx_other_packets",
            {"class", "other"}),
    of_port(Kind::counter, "weir_port_transmit_dropped_total",
            "Packets for which the port's backlog was full.", "tx_ring_dropped", {"class", "ring"}),
    of_port(Kind::counter, "weir_port_transmit_dropped_total", "", "tx_other_dropped",
            {"class", "other"}),

    of_bridge(Kind::gauge, "weir_port_loop_closed_seconds",
              "How long the port stays closed for a loop; 0: it is not.", "closed_s"),
    of_bridge(Kind::counter, "weir_port_loops_total", "How often it was closed for a loop.",
              "loops"),
    of_bridge(Kind::counter, "weir_port_wrong_cable_probes_total",
              "Loop probes that came by the port while it had bridge: no.", "wrong_probes"),

    of_ring(Kind::gauge, "weir_ring_ranks", "Ranks of the ring.", "world"),
    of_ring(Kind::gauge, "weir_ring_connected_ranks", "Ranks whose connection is admitted.",
            "connected"),
    of_ring(Kind::counter, "weir_ring_slots_completed_total",
            "Packets of the ring to which every rank has contributed.", "slots_completed"),
    of_ring(Kind::gauge, "weir_ring_slots_filling", "Packets that still wait for some rank.",
            "filling"),
    of_ring(Kind::gauge, "weir_ring_held_frames", "Frames that these hold.", "held"),
    of_ring(Kind::counter, "weir_ring_results_total", "Results that were sent.", "results"),
    of_ring(Kind::counter, "weir_ring_reduced_bytes_total", "Bytes of contributions.",
            "reduced_bytes"),
    of_ring(Kind::counter, "weir_ring_operator_packets_total",
            "Packets that operators of the users' own have folded.", "by_operator"),
    of_ring(Kind::counter, "weir_ring_flagged_packets_total",
            "Those of them whose result has a flag.", "flagged"),
    of_ring(Kind::counter, "weir_ring_told_total", "NAKs that told a rank that its run is over.",
            "told"),

    of_rank(Kind::counter, "weir_rank_packets_total", "Requests that came from the rank.",
            tables::kMembers, "packets"),
    of_rank(Kind::counter, "weir_rank_lost_packets_total",
            "Packets lost between the rank and the switch, by direction.", tables::kRecovery,
            "lost_from", {"direction", "from_rank"}),
    of_rank(Kind::counter, "weir_rank_lost_packets_total", "", tables::kRecovery, "lost_to",
            {"direction", "to_rank"}),
    of_rank(Kind::counter, "weir_rank_naks_total", "NAKs sent to the rank.", tables::kRecovery,
            "naks", {"kind", "sequence"}),
    of_rank(Kind::counter, "weir_rank_naks_total", "", tables::kRecovery, "rnr_naks",
            {"kind", "rnr"}),
    of_rank(Kind::counter, "weir_rank_repeats_swallowed_total",
            "Packets that the rank sent again and that the switch needed no more.",
            tables::kRecovery, "swallowed"),
    of_rank(Kind::counter, "weir_rank_results_resent_total",
            "Results sent again in answer to the rank.", tables::kRecovery, "resent"),
    of_rank(Kind::counter, "weir_rank_kept_alive_total",
            "Answers that keep the rank's queue pair alive while it waits for another rank.",
            tables::kRecovery, "kept_alive"),
    Metric{.name = "weir_rank_waited_for_seconds",
           .help = "How long the ring's oldest packet has waited for the rank; 0: not for it.",
           .kind = Kind::gauge,
           .scope = Scope::each_ring,
           .question = "/weir/ring",
           .table = &tables::kRecovery,
           .value = "waited_for_ms",
           .unit = kPerMilli,
           .label = "rank"},
    Metric{.name = "weir_ring_dropped_frames_total",
           .help = "Frames of the ring that were dropped, by reason.",
           .kind = Kind::counter,
           .scope = Scope::each_ring,
           .question = "/weir/ring",
           .table = &tables::kRingDrops,
           .value = "count",
           .label = "reason",
           .known = kDropReasonNames},
    of_line(Kind::gauge, "weir_ring_waiting_frames",
            "Frames of the ring, and of those that share neighbours with it, that wait for their "
            "turn at the worker.",
            "waiting"),
    of_line(Kind::counter, "weir_ring_waited_frames_total", "Frames that had to wait for it.",
            "waited"),
    Metric{.name = "weir_ring_slot_seconds",
           .help = "From a packet's first contribution to its last. The sum is not measured.",
           .kind = Kind::histogram,
           .scope = Scope::each_ring,
           .question = "/weir/ring",
           .table = &tables::kSlotTime,
           .value = "count",
           .unit = kPerNano,
           .label = ""},
    of_uplink("weir_ring_climbs_total", "Hellos for the switch above.", "climbs"),
    of_uplink("weir_ring_partial_sums_total", "Partial sums that left for the switch above.",
              "partial_sums"),
    of_uplink("weir_ring_totals_total", "Totals that came from the switch above.", "totals"),
    Metric{.name = "weir_ring_total_seconds",
           .help = "From a partial sum's departure to its total. The sum is not measured.",
           .kind = Kind::histogram,
           .scope = Scope::each_ring_below_a_switch,
           .question = "/weir/ring",
           .table = &tables::kTotalTime,
           .value = "count",
           .unit = kPerNano,
           .label = ""},

    Metric{.name = "weir_rings_reclaimed_total",
           .help = "Rings that the switch took back because nobody used them, by reason.",
           .kind = Kind::counter,
           .question = "/weir/reclaimed",
           .table = &tables::kReclaims,
           .value = "count",
           .label = "reason",
           .known = kReclaimReasonNames},
    Metric{.name = "weir_gate_ended_processes_total",
           .help = "Processes between the network and the control service that did not end by "
                   "themselves, by kind.",
           .kind = Kind::counter,
           .question = "/weir/gate",
           .table = &tables::kGate,
           .value = "count",
           .label = "process"},
    Metric{.name = "weir_dropped_frames_total",
           .help = "Frames that the switch dropped, by reason.",
           .kind = Kind::counter,
           .question = "/weir/drops",
           .table = &tables::kDrops,
           .value = "count",
           .label = "reason",
           .known = kDropReasonNames},
    Metric{.name = "weir_foreign_frames_total",
           .help = "Forwarded frames with an INA header that belongs to no ring here, by reason.",
           .kind = Kind::counter,
           .question = "/weir/drops",
           .table = &tables::kForeign,
           .value = "count",
           .label = "reason",
           .known = kForeignReasonNames},

    of_tenant(Kind::gauge, "weir_tenant_rings", "Rings of the tenant.", "rings"),
    of_tenant(Kind::gauge, "weir_tenant_memory_bytes",
              "What the frames, slots and results of its rings can take.", "memory_mib",
              control::kMiB),
    of_tenant(Kind::gauge, "weir_tenant_neighbours",
              "Neighbours that the switch remembers of its rings, withdrawn ones included.",
              "neighbours"),
    of_tenant(Kind::gauge, "weir_tenant_most_neighbours", "How many these may be.",
              "most_neighbours"),
    of_tenant(Kind::counter, "weir_tenant_over_rate_frames_total",
              "Frames dropped because they were more than the tenant's packets per second.",
              "over_rate"),
    of_share("weir_tenant_regions", "Regions of the tenant that have not ended.", "regions"),
    of_share("weir_tenant_most_regions", "How many these may be.", "most_regions"),
    of_share("weir_tenant_region_members", "Members of its regions.", "members"),
    of_share("weir_tenant_most_region_members", "How many these may be.", "most_members"),
    of_share("weir_tenant_region_frames", "Frames that its regions can hold.", "frames"),
    of_share("weir_tenant_most_region_frames", "How many these may be.", "most_frames"),

    of_region(Kind::gauge, "weir_region_id", "Which region has the place now.", "region"),
    of_region(Kind::gauge, "weir_region_members", "Members of the region.", "members"),
    of_region(Kind::gauge, "weir_region_heard_members", "Members that have said hello.", "heard"),
    of_region(Kind::gauge, "weir_region_held_frames",
              "Frames that wait until all targets have acknowledged, or all members have answered.",
              "held"),
    of_region(Kind::counter, "weir_region_packets_total",
              "Packets of members that were taken for the others.", "accepted"),
    of_region(Kind::counter, "weir_region_copies_total",
              "Copies sent to members, repeated ones too.", "copies"),
    of_region(Kind::counter, "weir_region_repeated_copies_total", "Copies sent again.", "again"),
    of_region(Kind::counter, "weir_region_answers_total", "ACKs, NAKs and RNR NAKs sent.",
              "answers"),
    of_region(Kind::counter, "weir_region_naks_total",
              "NAKs and RNR NAKs sent for what was lost or had no room.", "asked"),
    of_region(Kind::counter, "weir_region_cnps_total",
              "Notifications of congestion (CNPs) that members sent.", "congested"),
    of_region(Kind::counter, "weir_region_suppressed_cnps_total",
              "Of these, those that no source was told of.", "suppressed"),
    of_region(Kind::counter, "weir_region_passed_on_cnps_total", "CNPs sent to sources.",
              "notified"),
    of_region_line(Kind::gauge, "weir_region_waiting_frames",
                   "Frames of members that wait for their turn at the worker.", "waiting"),
    of_region_line(Kind::counter, "weir_region_waited_frames_total",
                   "Frames that had to wait for it.", "waited"),
    of_region_line(Kind::counter, "weir_region_queue_full_frames_total",
                   "Frames that were dropped because too many waited.", "queue_full"),
    Metric{.name = "weir_regions_ended_total",
           .help = "Regions that have ended, by reason.",
           .kind = Kind::counter,
           .question = "/weir/region",
           .table = &tables::kRegionEnds,
           .value = "count",
           .label = "reason",
           .known = region_ends},
    of_region(Kind::gauge, "weir_region_entries_used",
              "Packets of READs that are gathered from members.", "gathering"),
    of_region(Kind::counter, "weir_region_reads_total", "READs of members that were taken.",
              "reads"),
    of_region(Kind::counter, "weir_region_folds_total",
              "Packets that answered READs, repeated ones too.", "folds"),
    of_region(Kind::counter, "weir_region_repeated_folds_total", "Packets of READs answered again.",
              "folds_again"),
    of_region(Kind::counter, "weir_region_member_reads_total",
              "READs sent to members, repeated ones too.", "member_reads"),
    of_region(Kind::counter, "weir_region_repeated_member_reads_total",
              "READs sent to members again.", "member_reads_again"),
    of_member("weir_region_member_held_frames", "Frames of the member that are held.", "held"),
    of_member("weir_region_member_unacknowledged_copies",
              "Copies that the member has not acknowledged, and READs that it has not answered.",
              "unacknowledged"),
    of_member("weir_region_member_reads", "READs of the member that are not answered.", "reads"),
    of_member("weir_region_member_waited_for_seconds",
              "How long the member has given no sign of life while it owes an acknowledgement.",
              "waited_for_ms", kPerMilli),

    of_lcore(Kind::counter, "weir_lcore_rounds_total", "Rounds of the lcore's loop.", "rounds"),
    of_lcore(Kind::counter, "weir_lcore_idle_rounds_total", "Rounds that found nothing to do.",
             "idle_rounds"),
    of_lcore(Kind::counter, "weir_lcore_starved_rounds_total",
             "Rounds that found the pool of packet buffers empty.", "starved_rounds"),
    of_lcore(Kind::gauge, "weir_lcore_held_frames", "Frames that the lcore's rings hold.", "held"),
    Metric{.name = "weir_lcore_stood_still_seconds",
           .help = "How long lcores stood still for a question. The sum is not measured.",
           .kind = Kind::histogram,
           .question = "/weir/lcores",
           .table = &tables::kStoodStill,
           .value = "count",
           .unit = kPerNano,
           .label = ""},

    of_switch("weir_mbufs", "Packet buffers of the pool.", "/weir/memory", tables::kMemory,
              "mbufs"),
    of_switch("weir_free_mbufs", "Those that are free.", "/weir/memory", tables::kMemory,
              "free_mbufs"),
};

} // namespace

std::span<const Metric> catalogue() {
  return kCatalogue;
}

} // namespace weir::metrics
