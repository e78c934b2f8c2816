// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "endpoint/time.hpp"
#include "wire/address.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace weir::endpoint {

/// Retry without limit, for an owner that has its own deadline. Linux soft-RoCE does this for a
/// retry_cnt of 7 (drivers/infiniband/sw/rxe/rxe_comp.c); IBTA has no such value.
inline constexpr std::uint8_t kRetryForever = 0xff;
inline constexpr std::uint32_t kMostMessageBytes = std::uint32_t{1} << 31; // IBTA §9.7.7
/// Of one READ. With a full window before it, all PSNs in flight still have an order.
inline constexpr std::uint32_t kMostReadPackets = std::uint32_t{1} << 22;

/// Whose behaviour a queue pair has where implementations differ.
enum class Stack : std::uint8_t {
  ibta, // the specification's
  /// Linux soft-RoCE's, as it was measured with kernel 6.1. It obeys no second NAK before an ACK,
  /// believes an ACK of what it has not sent, lets the ACK timer run during an RNR wait, and
  /// acknowledges only packets that ask for it (docs/transports.md).
  soft_roce,
};

/// One end of a reliable connection. ibverbs sets these in the steps INIT, RTR and RTS; here they
/// come at once.
struct QueuePairConfig {
  wire::MacAddress local_mac;
  wire::MacAddress remote_mac;
  wire::IpAddress local_ip; // both IPv4 or both IPv6
  wire::IpAddress remote_ip;
  std::uint16_t udp_source_port = 0xc000; // entropy for ECMP (IBTA annex A17)
  std::uint8_t traffic_class = 0;         // DSCP and ECN
  Stack stack = Stack::ibta;
  std::uint8_t hop_limit = 64;
  std::uint32_t local_qp = 0; // 2 … 2^24-1; 0 and 1 are for management (IBTA §3.9)
  std::uint32_t remote_qp = 0;
  std::uint32_t send_psn = 0;    // of the first request packet that we send
  std::uint32_t receive_psn = 0; // of the first request packet that we expect
  std::uint32_t path_mtu = 1024; // payload bytes: 256, 512, 1024, 2048 or 4096

  Duration ack_timeout = std::chrono::milliseconds(67); // 0: never; 67 ms is 14 in ibverbs
  std::uint8_t retry_count = 7;        // 0 … 7 retries without progress, or kRetryForever
  std::uint8_t rnr_retry = 7;          // 0 … 6, or 7: for ever
  std::uint8_t rnr_timer = 12;         // code 0 … 31 that our RNR NAKs carry
  std::uint32_t window = 64;           // request packets in flight, 1 … 2^22
  std::uint32_t ack_request_every = 8; // packets; capped at half the window
  // Packets; also at the end of each message and on each AckReq. soft_roce: on each AckReq alone.
  std::uint32_t acknowledge_every = 16;
  std::uint32_t send_depth = 64; // most requests posted and not yet polled
  std::uint32_t receive_depth = 64;
  // READs that we may have unanswered, and READs of the peer that we answer at once and remember.
  // The first is at most the peer's second (IBTA: initiator depth, responder resources). 0: none.
  std::uint32_t max_rd_atomic = 0;
  std::uint32_t max_dest_rd_atomic = 0;
};

/// Of a message or of a READ's data; an empty one takes a packet too.
constexpr std::size_t packets_of(std::size_t bytes, std::uint32_t path_mtu) {
  return bytes == 0 ? 1 : (bytes - 1) / path_mtu + 1;
}

/// The first defect of a configuration: what was found and what is allowed. Empty when there is
/// none.
std::string find_defect(const QueuePairConfig& config);

} // namespace weir::endpoint
