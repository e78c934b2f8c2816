// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What a queue pair's owner hands in and gets back.

#include "endpoint/fixed_ring.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace weir::endpoint {

enum class SendKind : std::uint8_t { write, write_immediate, send, send_immediate };

/// One outgoing message: `header` followed by `data`, either may be empty, 2^31 bytes together at
/// most (IBTA §9.7.7: larger messages do not exist). The bytes stay the caller's, who neither
/// changes nor frees them before the completion: a retransmission reads them again.
struct SendRequest {
  std::uint64_t id = 0; // comes back in the completion
  SendKind kind = SendKind::write;
  std::span<const std::uint8_t> header;
  std::span<const std::uint8_t> data;
  std::uint64_t remote_address = 0; // writes alone
  std::uint32_t remote_key = 0;     // writes alone
  std::uint32_t immediate = 0;      // the *_immediate kinds alone
};

/// Takes one incoming SEND into `buffer`, or the immediate of one RDMA WRITE, which leaves `buffer`
/// alone (IBTA §9.4.3). The buffer belongs to the queue pair until the completion.
struct ReceiveRequest {
  std::uint64_t id = 0;
  std::span<std::uint8_t> buffer;
};

enum class PostResult : std::uint8_t {
  posted,
  queue_full, // as many requests as the queue is deep have not been polled yet
  too_long,   // over 2^31 bytes
};

/// IBTA §10.8.3's completion statuses, as far as a software queue pair can have them.
enum class Status : std::uint8_t {
  success,
  retry_exceeded,         // the peer stayed silent, or a packet was lost, once too often
  rnr_retry_exceeded,     // the peer had no receive posted, once too often
  remote_access,          // NAK: rkey or range
  remote_invalid_request, // NAK: what we sent makes no sense to the peer
  remote_operational,     // NAK: the peer could not go on
  local_length,           // an incoming SEND was longer than the receive's buffer
  local_protection,       // we refused the peer's rkey or range; cause of failure only
  local_invalid_request,  // we refused the peer's packet; cause of failure only
  flushed,                // the queue pair failed before this request's turn came
};

std::string_view name_of(Status status);

enum class CompletionKind : std::uint8_t { send, write, receive, receive_write_immediate };

struct Completion {
  std::uint64_t id = 0;
  Status status = Status::success;
  CompletionKind kind = CompletionKind::send;
  std::size_t bytes = 0; // of the message; 0 unless success
  std::optional<std::uint32_t> immediate;

  bool is_send_queue() const {
    return kind == CompletionKind::send || kind == CompletionKind::write;
  }
};

/// Deep enough for every request that either queue can hold, so it is never full.
using CompletionRing = FixedRing<Completion>;

} // namespace weir::endpoint
