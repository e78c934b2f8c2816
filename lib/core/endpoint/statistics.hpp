// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace weir::endpoint {

/// A queue pair's counters: name and meaning. Bytes count whole frames without FCS.
#define WEIR_ENDPOINT_COUNTERS(X)                                                                  \
  X(packets_sent, "frames written by transmit")                                                    \
  X(bytes_sent, "bytes of those frames")                                                           \
  X(packets_received, "frames handed to receive")                                                  \
  X(bytes_received, "bytes of those frames")                                                       \
  X(packets_retransmitted, "request packets sent once more")                                       \
  X(messages_sent, "requests completed with success")                                              \
  X(messages_received, "incoming messages executed whole")                                         \
  X(acks_sent, "ACKs sent")                                                                        \
  X(naks_sent, "NAKs sent, RNR NAKs aside")                                                        \
  X(rnr_naks_sent, "RNR NAKs sent")                                                                \
  X(acks_received, "ACKs that acknowledged something new")                                         \
  X(read_responses_sent, "READ responses sent")                                                    \
  X(read_responses_received, "READ responses that brought new data")                               \
  X(missing_responses, "times that a later answer showed READ responses to be missing")            \
  X(forgotten_reads, "repeats of READs that are not remembered: dropped")                          \
  X(naks_received, "NAKs obeyed, RNR NAKs aside")                                                  \
  X(rnr_naks_received, "RNR NAKs obeyed")                                                          \
  X(stale_acks, "ACKs, NAKs and READ responses for nothing in flight: repeats, ghosts; ignored")   \
  X(cnps_received, "congestion notifications, ignored")                                            \
  X(timeouts, "ACK timer ran out")                                                                 \
  X(duplicates, "request packets already executed: answered again; only READs execute again")      \
  X(out_of_sequence, "request packets after a gap: dropped")                                       \
  X(bad_icrc, "dropped: ICRC does not match")                                                      \
  X(malformed, "dropped: lengths or fields contradict each other")                                 \
  X(misdirected, "dropped: not from the peer to this queue pair")                                  \
  X(unsupported, "dropped: an operation this endpoint does not have")                              \
  X(dropped_in_error, "dropped: the queue pair had failed already")

struct Statistics {
#define WEIR_ENDPOINT_FIELD(name, meaning) std::uint64_t name = 0;
  WEIR_ENDPOINT_COUNTERS(WEIR_ENDPOINT_FIELD)
#undef WEIR_ENDPOINT_FIELD

  bool operator==(const Statistics&) const = default;
};

struct CounterInfo {
  std::string_view name;
  std::string_view meaning;
  std::uint64_t Statistics::*value;
};

#define WEIR_ENDPOINT_ROW(name, meaning) CounterInfo{#name, meaning, &Statistics::name},
inline constexpr std::array kCounters{WEIR_ENDPOINT_COUNTERS(WEIR_ENDPOINT_ROW)};
#undef WEIR_ENDPOINT_ROW

} // namespace weir::endpoint
