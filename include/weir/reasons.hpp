// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Why the switch drops a frame, and why it forwards an INA header unchanged. Each list makes the
/// enum, the counters, the names in prompt and telemetry, and the table in docs/drops.md (a test
/// compares that table with the list).

#include <cstddef>
#include <cstdint>
#include <string_view>

// clang-format off
#define WEIR_DROP_REASONS(X)                                                                                            \
  /* between ring neighbours: lengths and encapsulation */                                                              \
  X(fragment,            "RoCE between ring neighbours in an IP fragment")                                              \
  X(ipv6_extension,      "RoCE between ring neighbours behind IPv6 extension headers")                                  \
  X(length_mismatch,     "lengths of Ethernet, IP, UDP, pad, RETH and INA header disagree")                             \
  X(transport_version,   "BTH transport version is not 0")                                                              \
  X(bad_icrc,            "ICRC does not match the frame")                                                               \
  /* the INA header of a member */                                                                                      \
  X(result_flag,         "a host set RESULT; only the switch may")                                                      \
  X(partial_flag,        "a host set PARTIAL; only a switch may")                                                       \
  X(raw_from_switch,     "a switch below sent a header without PARTIAL: it has forgotten the ring")                     \
  X(raw_from_parent,     "the switch above sent a header without RESULT, or with PARTIAL")                              \
  X(reserved_bits,       "reserved flags are not zero")                                                                 \
  X(unsupported_collective, "collective is none of all-reduce, hello, broadcast and barrier")                           \
  X(unsupported_pair,    "operation and data type cannot be reduced together, or are unknown")                          \
  X(bad_root,            "root is not below world, or not 0 in a collective without one")                               \
  X(barrier_data,        "barrier with data")                                                                           \
  X(bad_hello,           "hello with a message id, or with data that are no table of operators")                        \
  X(bad_nonce,           "hello with nonce 0")                                                                          \
  X(wrong_nonce,         "hello with another nonce than the one that its ring was made for")                            \
  X(bad_ack_timeout,     "hello with an ACK timeout exponent above 31")                                                 \
  X(queue_pair_untold,   "hello in a tree of switches that does not tell its queue pair")                               \
  X(ring_differs,        "a switch below has the ring with another world, window, message length, MTU or members")       \
  X(range_differs,       "a switch below covers other ranks than this one has for it")                                  \
  X(operator_tables_differ, "hello whose table of operators is not that of the run's others")                           \
  X(operator_not_granted, "message by an operator that this switch lacks, or does not grant to the ring")               \
  X(wrong_epoch,         "epoch is not that of the ring's incarnation")                                                 \
  X(wrong_session,       "session is not that of the ring's incarnation: it is over, or the switch was restarted")      \
  X(message_too_long,    "message is longer than the ring's max_message_bytes")                                         \
  X(partial_element,     "data is not a whole number of elements")                                                      \
  /* hellos and incarnations */                                                                                         \
  X(old_epoch,           "hello with an epoch older than the ring's")                                                   \
  X(retired_nonce,       "hello of an incarnation that is over")                                                        \
  X(hello_elsewhere,     "hello of the ring's incarnation, not on the rank's connection")                               \
  X(hello_conflict,      "hello on another QP or PSN than the one that waits")                                          \
  X(hello_displaced,     "waiting hello given up for newer ones of its rank")                                           \
  X(hello_overtaken,     "waiting hello given up because its sender went on without a result")                          \
  X(hello_given_up,      "waiting hello given up because another incarnation began")                                    \
  X(total_without_set,   "hello's result from the switch above for a run whose hellos do not wait here")                \
  X(ring_draining,       "hello that would begin a new incarnation of a ring that drains")                              \
  /* connection and message history */                                                                                  \
  X(no_connection,       "message on a connection that no hello has admitted")                                          \
  X(unclassified,        "mid-message packet between ring neighbours on a QP not yet classified")                       \
  X(dead_connection,     "connection of an incarnation that is over")                                                   \
  X(wrong_port,          "RoCE between ring neighbours, not from the source's own port")                                \
  X(unsupported_request, "READ, atomic or other request that cannot be aggregated, on a ring's connection")             \
  X(unannounced,         "INA header of no ring here, on a connection whose hello did not pass; and its later packets") \
  X(partial_of_unknown_ring, "PARTIAL, and this switch does not add up the ring: it was withdrawn, or a switch forgot it") \
  X(window_exceeded,     "message more than N beyond the newest")                                                       \
  X(history_conflict,    "message begins at another PSN than before")                                                   \
  X(unknown_message,     "packet inside no known message: its FIRST was lost")                                          \
  X(connection_table_full, "no room for another queue pair of a ring")                                                  \
  X(out_of_turn,         "plain message on a ring's connection, before results that wait for their turn")               \
  /* recovery */                                                                                                        \
  X(stale_repeat,        "repeat of a message that has left the history")                                               \
  X(repeat_swallowed,    "repeat of a packet whose result has left; one answer serves all repeats of a pass")           \
  X(nak_mended,          "a receiver's NAK, answered from the cache")                                                   \
  /* slots */                                                                                                           \
  X(disagree_operation,  "operation differs from the other ranks'")                                                     \
  X(disagree_type,       "data type differs from the other ranks'")                                                     \
  X(disagree_length,     "message length differs from the other ranks'")                                                \
  X(disagree_collective, "collective differs from the other ranks'")                                                    \
  X(disagree_root,       "root differs from the other ranks'")                                                          \
  X(disagree_payload,    "payload size differs from the other ranks'")                                                  \
  X(repeat_held,         "repeat of a contribution that is already held")                                               \
  X(total_early,         "total from the switch above for a sum that has not left: an earlier life of this one sent it") \
  X(window_violation,    "the slot is still filling for an older message")                                              \
  X(incarnation_flush,   "contribution given up because a new incarnation began")                                       \
  X(ring_reset,          "contribution or waiting hello given up because the ring was reset")                           \
  X(operator_disagrees,  "contribution given up because a kernel and the loops gave other bits: the incarnation is over")\
  X(ring_withdrawn,      "contribution or waiting hello given up because the ring was withdrawn")                       \
  /* regions */                                                                                                         \
  X(region_impostor,     "bears the address or the MAC address of the regions as its sender's")                         \
  X(region_unknown,      "to the regions' MAC address, and to no queue pair of a region")                              \
  X(region_elsewhere,    "to a region's queue pair, not from its member's address and port")                            \
  X(region_early,        "to a region that not all members have said hello to, and no member's hello")                  \
  X(region_gap,          "a member's request above the next one: one was lost, and the member is asked")                \
  X(region_repeat,       "repeat of a member's request; one answer serves all repeats of a pass")                       \
  X(region_window,       "more packets of a member than the region holds")                                              \
  X(region_request,      "a member's request that no region takes: the region has ended")                               \
  X(region_key,          "a member's write or READ by a wrong key, or beyond the region: the region has ended")         \
  X(region_ghost,        "acknowledgement of what the region has not sent")                                             \
  X(region_response,     "a member's READ response that nobody waits for")                                              \
  X(region_ended,        "a region has ended: its members' packets, and what it held")                                  \
  /* Ethernet */                                                                                                        \
  X(runt,                "shorter than an Ethernet header")                                                             \
  X(same_port,           "destination is behind the ingress port")                                                      \
  X(link_local,          "IEEE 802.1D reserved group address")                                                          \
  X(no_egress,           "no other port to flood to")                                                                   \
  X(not_bridged,         "from or to a port that does not bridge (bridge: no, or a loop), not between ring neighbours") \
  X(tied_elsewhere,      "the configuration ties the source's MAC address to another port")                             \
  X(loop_probe,          "a loop probe: the switch's own, or another's that no other switch needs")                     \
  X(too_long,            "longer than the egress port's MTU allows")                                                    \
  /* resources */                                                                                                       \
  X(not_contiguous,      "frame in several segments that do not fit one buffer")                                        \
  X(worker_queue_full,   "worker lcore is behind")                                                                      \
  X(ring_queue_full,     "worker lcore is behind, and more of these rings' frames wait than of others")                 \
  X(region_queue_full,   "worker lcore is behind, and more of this region's frames wait than of others")                \
  X(tenant_rate,         "more packets per second than the tenant of the ring or region may send, and too many wait")   \
  X(tx_queue_full,       "transmit lcore is behind")                                                                    \
  X(tx_backlog_full,     "egress port is full")                                                                         \
  X(ring_tx_queue_full,  "transmit lcore is behind: a result, or an answer between ring neighbours")                     \
  X(ring_tx_backlog_full, "egress port is full: a result, or an answer between ring neighbours")                         \
  X(port_closed,         "a reload has closed the egress port")

#define WEIR_FOREIGN_REASONS(X)                                                                                         \
  X(unknown_version,     "INA version is neither 2 nor 3")                                                              \
  X(unknown_ring,        "ring is not configured, or was withdrawn")                                                    \
  X(world_mismatch,      "world is not the ring's number of members")                                                   \
  X(rank_out_of_range,   "rank is not below world")                                                                     \
  X(source_mismatch,     "source address is not that of the rank")                                                      \
  X(destination_mismatch,"destination address is not that of the next rank")

// clang-format on

namespace weir {

#define WEIR_ENUMERATOR(name, text) name,

/// Why a frame ended in the switch.
enum class DropReason : std::uint8_t { WEIR_DROP_REASONS(WEIR_ENUMERATOR) count };

/// Why a frame with an INA header was forwarded unchanged.
enum class ForeignReason : std::uint8_t { WEIR_FOREIGN_REASONS(WEIR_ENUMERATOR) count };

#undef WEIR_ENUMERATOR

inline constexpr std::size_t kDropReasons = static_cast<std::size_t>(DropReason::count);
inline constexpr std::size_t kForeignReasons = static_cast<std::size_t>(ForeignReason::count);

std::string_view name_of(DropReason reason);
std::string_view text_of(DropReason reason);
std::string_view name_of(ForeignReason reason);
std::string_view text_of(ForeignReason reason);

} // namespace weir
