// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The columns of every table in any answer, defined once. The questions name them, and each view
/// prints them.

#include "report/report.hpp"

#include <array>

namespace weir::report::tables {

namespace columns {

inline constexpr std::array kPortInfo{
    Column{"port", "port"},
    Column{"device", "device"},
    Column{"driver", "driver"},
    Column{"mac", "MAC"},
    Column{"link", "link"},
    Column{"mtu", "MTU"},
    Column{"rx_queues", "rx queues"},
    Column{"numa_node", "NUMA node"},
    Column{"promiscuous", "promiscuous"},
};
inline constexpr std::array kPortStats{
    Column{"port", "port"},
    Column{"rx_packets", "rx packets"},
    Column{"rx_bytes", "rx bytes"},
    Column{"rx_missed", "rx missed"},
    Column{"rx_errors", "rx errors"},
    Column{"tx_packets", "tx packets"},
    Column{"tx_bytes", "tx bytes"},
    Column{"tx_errors", "tx errors"},
    Column{"tx_ring_packets", "of rings"},
    Column{"tx_ring_dropped", "dropped"},
    Column{"tx_other_packets", "others"},
    Column{"tx_other_dropped", "dropped"},
};
inline constexpr std::array kPortXstats{
    Column{"port", "port"},
    Column{"name", "name"},
    Column{"value", "value"},
};
inline constexpr std::array kPortSteering{
    Column{"port", "port"},
    Column{"rx_steering", "rx steering"},
    Column{"steered", "pairs steered"},
    Column{"refused", "refused"},
    Column{"without_queue", "without queue"}, // their workers poll none of the port's
    Column{"reason", "the driver's reason"},
};
inline constexpr std::array kRings{
    Column{"ring", "ring"},
    Column{"world", "ranks"},
    Column{"window", "window"},
    Column{"mtu", "mtu"},
    Column{"epoch", "epoch"},
    Column{"connected", "connected"},
    Column{"hellos", "hellos"},
    Column{"slots_completed", "slots done"},
    Column{"filling", "filling"},
    Column{"held", "held frames"},
    Column{"results", "results"},
    Column{"cached_results", "cached"},
    Column{"reduced_bytes", "bytes in"},
    Column{"draining_s", "drains s"}, // for so long; "-": it does not
};
inline constexpr std::array kMembers{
    Column{"rank", "rank"},
    Column{"ip", "address"},
    Column{"state", "state"},
    Column{"qp", "to QP"},
    Column{"newest_message", "newest message"},
    Column{"packets", "packets"},
};
inline constexpr std::array kRecovery{
    Column{"rank", "rank"},
    Column{"lost_from", "lost from it"}, // between the rank and the switch
    Column{"lost_to", "lost to it"},     // between the switch and the rank
    Column{"naks", "NAKs sent"},
    Column{"rnr_naks", "RNR NAKs sent"},
    Column{"swallowed", "repeats swallowed"},
    Column{"resent", "results resent"},
    Column{"kept_alive", "kept alive"},
    Column{"waited_for_ms", "waited for ms"},
};
inline constexpr std::array kRingQueue{
    Column{"tenant", "tenant"},
    Column{"packets_per_second", "packets a second"}, // its tenant's, at the ring's worker
    Column{"waiting", "waiting"},
    Column{"waited", "waited"},
    Column{"queue_full", "dropped: queue full"},
    Column{"over_rate", "dropped: tenant's rate"},
};
inline constexpr std::array kTenants{
    Column{"tenant", "tenant"},
    Column{"rings", "rings"},
    Column{"most_rings", "most"},
    Column{"memory_mib", "MiB"},
    Column{"most_memory_mib", "most"},
    Column{"neighbours", "neighbours"},
    Column{"most_neighbours", "most"},
    Column{"packets_per_second", "packets a second"},
    Column{"waiting", "waiting"},
    Column{"waited", "waited"},
    Column{"queue_full", "dropped: queue full"},
    Column{"over_rate", "dropped: its rate"},
    Column{"hosts", "hosts"}, // blocks of addresses
};
inline constexpr std::array kGate{
    Column{"process", "process"},
    Column{"count", "ended"},
    Column{"meaning", "meaning"},
};
inline constexpr std::array kReasons{
    Column{"reason", "reason"},
    Column{"count", "count"},
    Column{"meaning", "meaning"},
};
inline constexpr std::array kNanoseconds{
    Column{"from", "from ns"},
    Column{"to", "to ns"},
    Column{"count", "count"},
    Column{"bar", "share"},
};
inline constexpr std::array kStuck{
    Column{"message", "message"},
    Column{"packet", "packet"},
    Column{"waiting_ms", "waiting ms"},
    Column{"missing", "waits for ranks"},
};
inline constexpr std::array kWaitedFor{
    Column{"rank", "rank"},
    Column{"ip", "address"},
    Column{"qp", "to QP"},
    Column{"last_packet_ms", "last packet ms ago"},
    Column{"waits_for", "its connection waits for"},
    Column{"asked", "asked"}, // by the switch, to go back
    Column{"asked_ms", "last asked ms ago"},
};
inline constexpr std::array kConnections{
    Column{"pair", "pair"},       Column{"qp", "to QP"},  Column{"state", "state"},
    Column{"ring", "ring"},       Column{"rank", "rank"}, Column{"packets", "packets"},
    Column{"idle_ms", "idle ms"},
};
inline constexpr std::array kAccounting{
    Column{"received", "received"},     Column{"originated", "+ originated"},
    Column{"forwarded", "= forwarded"}, Column{"consumed", "+ consumed"},
    Column{"dropped", "+ dropped"},     Column{"held", "+ held"},
    Column{"queued", "+ queued"},       Column{"balances", "balances"},
};
inline constexpr std::array kReclaimed{
    Column{"ring", "ring"},         Column{"time", "time (UTC)"}, Column{"reason", "reason"},
    Column{"silent_s", "silent s"}, Column{"frames", "frames"},   Column{"fate", "the ring"},
};
inline constexpr std::array kGraph{
    Column{"stage", "stage"},
    Column{"file", "file"},
    Column{"next", "hands on to"},
    Column{"drops", "drops"},
};
inline constexpr std::array kFdb{
    Column{"mac", "MAC"},
    Column{"port", "port"},
    Column{"age_s", "age s"},
    Column{"pins", "pinned by"},
};
inline constexpr std::array kLcores{
    Column{"lcore", "lcore"},
    Column{"roles", "roles"},
    Column{"numa_node", "NUMA node"},
    Column{"rings", "rings"},
    Column{"rounds", "rounds"},
    Column{"idle_rounds", "idle rounds"},
    Column{"starved_rounds", "without mbufs"},
    Column{"reductions_for_others", "reductions for others"},
    Column{"handed_over", "handed over"}, // frames for other lcores' workers
    Column{"busy_percent", "busy %"},
    Column{"received", "received"},
    Column{"forwarded", "forwarded"},
    Column{"consumed", "consumed"},
    Column{"dropped", "dropped"},
    Column{"held", "held"},
};
inline constexpr std::array kPackets{
    Column{"from", "from packets"},
    Column{"to", "to packets"},
    Column{"count", "count"},
    Column{"bar", "share"},
};
inline constexpr std::array kMemory{
    Column{"mbufs", "mbufs"},         Column{"free_mbufs", "free"},
    Column{"data_room", "data room"}, Column{"pool_mib", "pool MiB"},
    Column{"ring_mib", "rings MiB"},
};
inline constexpr std::array kCapture{
    Column{"of", "of"},           Column{"file", "file"},
    Column{"state", "state"},     Column{"count", "wanted"},
    Column{"written", "written"}, Column{"queue_full", "left out: queue full"},
};
inline constexpr std::array kChanges{
    Column{"key", "key"},       Column{"from", "running"},    Column{"to", "file"},
    Column{"effect", "effect"}, Column{"meaning", "meaning"},
};
inline constexpr std::array kTrace{
    Column{"time_us", "time us"}, Column{"ingress", "from"},    Column{"stage", "stage"},
    Column{"event", "event"},     Column{"egress", "to"},       Column{"ring", "ring"},
    Column{"rank", "rank"},       Column{"message", "message"}, Column{"packet", "packet"},
    Column{"qp", "to QP"},        Column{"psn", "PSN"},         Column{"bytes", "bytes"},
};

} // namespace columns

inline constexpr TableShape kPortInfo{"port_info", columns::kPortInfo, {}};
inline constexpr TableShape kPortStats{"port_stats", columns::kPortStats, {}};
inline constexpr TableShape kPortXstats{"port_xstats", columns::kPortXstats, {}};
inline constexpr TableShape kPortSteering{"port_steering", columns::kPortSteering,
                                          "pairs of ring neighbours that may arrive at the port"};
inline constexpr TableShape kRings{"rings", columns::kRings, {}};
inline constexpr TableShape kMembers{"members", columns::kMembers, {}};
inline constexpr TableShape kRecovery{"recovery", columns::kRecovery, {}};
inline constexpr TableShape kRingDrops{"ring_drops", columns::kReasons, {}};
inline constexpr TableShape kSlotTime{"slot_time", columns::kNanoseconds,
                                      "from a slot's first contribution to its last"};
inline constexpr TableShape kRingQueue{
    "ring_queue", columns::kRingQueue,
    "frames that wait for their turn at the worker; rings that share neighbours wait together"};
inline constexpr TableShape kTenants{"tenants", columns::kTenants, {}};
inline constexpr TableShape kStuck{"stuck", columns::kStuck, {}};
inline constexpr TableShape kWaitedFor{"waited_for", columns::kWaitedFor, {}};
inline constexpr TableShape kConnections{"connections", columns::kConnections, {}};
inline constexpr TableShape kDrops{"drops", columns::kReasons, {}};
inline constexpr TableShape kForeign{
    "foreign", columns::kReasons,
    "frames with an INA header that belongs to no ring here: forwarded untouched"};
inline constexpr TableShape kAccounting{"accounting", columns::kAccounting, {}};
inline constexpr TableShape kReclaimed{"reclaimed", columns::kReclaimed, {}};
inline constexpr TableShape kReclaims{"reclaims", columns::kReasons,
                                      "rings that the switch took back, since it was started"};
inline constexpr TableShape kGate{
    "gate", columns::kGate,
    "processes between the network and the control service, since the switch was started"};
inline constexpr TableShape kGraph{"graph", columns::kGraph,
                                   "a drop reason that two stages give counts at both"};
inline constexpr TableShape kFdb{"fdb", columns::kFdb, {}};
inline constexpr TableShape kLcores{"lcores", columns::kLcores, {}};
inline constexpr TableShape kRxBurst{"rx_burst", columns::kPackets, {}};
inline constexpr TableShape kStoodStill{"stood_still", columns::kNanoseconds,
                                        "each time that an lcore stood still for a question"};
inline constexpr TableShape kMemory{"memory", columns::kMemory, {}};
inline constexpr TableShape kCapture{"capture", columns::kCapture, {}};
inline constexpr TableShape kChanges{"changes", columns::kChanges, {}};
inline constexpr TableShape kTrace{"trace", columns::kTrace, {}};

} // namespace weir::report::tables
