// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Why the switch drops a frame, and why it leaves an INA header alone. One list each makes the
/// enum, the counters, the prompt's and telemetry's names and the table in docs/drops.md (a test
/// holds that table to this list).

#include <cstddef>
#include <cstdint>
#include <string_view>

// clang-format off
#define WEIR_DROP_REASONS(X)                                                                                            \
  /* between ring neighbours: lengths and encapsulation */                                                              \
  X(fragment,            "RoCE between ring neighbours in an IP fragment")                                               \
  X(ipv6_extension,      "RoCE between ring neighbours behind IPv6 extension headers")                                   \
  X(length_mismatch,     "lengths of Ethernet, IP, UDP, pad, RETH and INA header disagree")                              \
  X(transport_version,   "BTH transport version is not 0")                                                              \
  X(bad_icrc,            "ICRC does not match the frame")                                                               \
  /* the INA header of a member */                                                                                      \
  X(result_flag,         "a host set RESULT, which is the switch's alone")                                              \
  X(reserved_bits,       "reserved flags are not zero")                                                       \
  X(unsupported_collective, "collective is neither all-reduce nor hello")                                               \
  X(unsupported_pair,    "operation and data type cannot be reduced together, or are unknown")                           \
  X(bad_hello,           "hello with a message id, data or a session")                                                  \
  X(wrong_session,       "session is not the one this switch drew: the switch was restarted")                           \
  X(old_epoch,           "epoch is older than the ring's")                                                              \
  X(message_too_long,    "message is longer than the ring's max_message_bytes")                                         \
  X(partial_element,     "data is no whole number of elements")                                                         \
  /* connection and message history */                                                                                  \
  X(no_connection,       "message on a connection that no hello has admitted")                                          \
  X(unclassified,        "mid-message packet between ring neighbours on a QP not yet classified")                        \
  X(dead_connection,     "connection of a ring that was reset, flushed or superseded")                                  \
  X(wrong_port,          "member's packet from another port than its own")                                              \
  X(window_exceeded,     "message more than N beyond the newest")                                                       \
  X(history_conflict,    "message begins at another PSN than before")                                                   \
  X(unknown_message,     "packet inside no known message: its FIRST was lost")                                          \
  X(connection_table_full, "no room for another queue pair between ring neighbours")                                    \
  /* slots */                                                                                                           \
  X(disagree_operation,  "operation differs from the other ranks'")                                                     \
  X(disagree_type,       "data type differs from the other ranks'")                                                     \
  X(disagree_length,     "message length differs from the other ranks'")                                                \
  X(disagree_collective, "collective differs from the other ranks'")                                                    \
  X(disagree_root,       "root differs from the other ranks'")                                                          \
  X(disagree_payload,    "payload size differs from the other ranks'")                                                  \
  X(repeat_held,         "repeat of a contribution that is already held")                                               \
  X(window_violation,    "would reclaim a slot that is still filling")                                                  \
  X(epoch_flush,         "contribution given up because a newer epoch began")                                           \
  X(ring_reset,          "contribution given up because the ring was reset")                                            \
  /* Ethernet */                                                                                                        \
  X(runt,                "shorter than an Ethernet header")                                                             \
  X(same_port,           "destination is behind the ingress port")                                                      \
  X(link_local,          "IEEE 802.1D reserved group address")                                                          \
  X(no_egress,           "no other port to flood to")                                                                   \
  X(too_long,            "longer than the egress port's MTU allows")                                                    \
  /* resources */                                                                                                       \
  X(not_contiguous,      "frame in several segments that do not fit one buffer")                                        \
  X(worker_queue_full,   "worker lcore is behind")                                                                      \
  X(tx_queue_full,       "transmit lcore is behind")                                                                    \
  X(tx_backlog_full,     "egress port takes no more")

#define WEIR_FOREIGN_REASONS(X)                                                                                         \
  X(unknown_version,     "INA version is not 1")                                                                        \
  X(unknown_ring,        "ring is not configured")                                                                      \
  X(world_mismatch,      "world is not the ring's number of members")                                                   \
  X(rank_out_of_range,   "rank is not below world")                                                                     \
  X(source_mismatch,     "source address is not that of the rank")                                                      \
  X(destination_mismatch,"destination address is not that of the next rank")                                            \
  X(port_mismatch,       "ingress port is not that of the rank")

// clang-format on

namespace weir {

#define WEIR_ENUMERATOR(name, text) name,

/// Each ends a frame's way through the switch.
enum class DropReason : std::uint8_t { WEIR_DROP_REASONS(WEIR_ENUMERATOR) count };

/// Each says why a frame with an INA header was forwarded as somebody else's.
enum class ForeignReason : std::uint8_t { WEIR_FOREIGN_REASONS(WEIR_ENUMERATOR) count };

#undef WEIR_ENUMERATOR

inline constexpr std::size_t kDropReasons = static_cast<std::size_t>(DropReason::count);
inline constexpr std::size_t kForeignReasons = static_cast<std::size_t>(ForeignReason::count);

std::string_view name_of(DropReason reason);
std::string_view text_of(DropReason reason);
std::string_view name_of(ForeignReason reason);
std::string_view text_of(ForeignReason reason);

} // namespace weir
