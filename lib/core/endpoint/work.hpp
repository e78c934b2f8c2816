// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Requests and completions of a queue pair.

#include "endpoint/fixed_queue.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace weir::endpoint {

enum class SendKind : std::uint8_t { write, write_immediate, send, send_immediate, read };

/// Whether a request may leave while READs before it wait for their data (IBTA: fence
/// indicator). A write that follows a READ of the same bytes needs `after_reads`: without it the
/// peer may have the new bytes when it answers.
enum class Fence : std::uint8_t { none, after_reads };

/// One outgoing message: `header` followed by `data`. Either may be empty; together 2^31 bytes at
/// most (IBTA §9.7.7). Or a READ of target.size() bytes, in kMostReadPackets packets at most. The
/// caller owns the bytes and must neither change nor free them before the completion, because a
/// retransmission reads them again.
struct SendRequest {
  std::uint64_t id = 0; // returned in the completion
  SendKind kind = SendKind::write;
  std::span<const std::uint8_t> header;
  std::span<const std::uint8_t> data;
  std::uint64_t remote_address = 0; // for writes and reads
  std::uint32_t remote_key = 0;     // for writes and reads
  std::uint32_t immediate = 0;      // for the *_immediate kinds
  // For reads: where the data goes. It is written before the completion, and has no meaning when
  // the completion tells of an error.
  std::span<std::uint8_t> target = {};
  Fence fence = Fence::none;
};

/// Takes one incoming SEND into `header` and then `buffer`, or the immediate of one RDMA WRITE,
/// which uses neither (IBTA §9.4.3). The queue pair owns both until the completion.
struct ReceiveRequest {
  std::uint64_t id = 0;
  std::span<std::uint8_t> header = {};
  std::span<std::uint8_t> buffer = {};
};

enum class PostResult : std::uint8_t {
  posted,
  queue_full, // the queue's depth of requests has not been polled yet
  too_long,   // over 2^31 bytes, or a READ of over kMostReadPackets
  no_reads,   // a READ where max_rd_atomic is 0
};

/// Completion statuses of IBTA §10.8.3 that a software queue pair can have.
enum class Status : std::uint8_t {
  success,
  retry_exceeded,         // the peer did not answer, or packets were lost, too many times
  rnr_retry_exceeded,     // the peer had no receive posted too many times
  remote_access,          // NAK: rkey or range
  remote_invalid_request, // NAK: the peer cannot interpret our request
  remote_operational,     // NAK: the peer could not continue
  bad_response,           // a READ response that does not fit what was asked
  local_length,           // an incoming SEND was longer than the receive's places
  local_protection,       // we refused the peer's rkey or range; only a cause of failure
  local_invalid_request,  // we refused the peer's packet; only a cause of failure
  flushed,                // the queue pair failed before this request
};

std::string_view name_of(Status status);

enum class CompletionKind : std::uint8_t { send, write, read, receive, receive_write_immediate };

struct Completion {
  std::uint64_t id = 0;
  Status status = Status::success;
  CompletionKind kind = CompletionKind::send;
  std::size_t bytes = 0; // of the message; 0 unless success
  std::optional<std::uint32_t> immediate;

  bool is_send_queue() const {
    return kind != CompletionKind::receive && kind != CompletionKind::receive_write_immediate;
  }
};

/// Has room for all requests of both queues of a queue pair, so it is never full.
using CompletionQueue = FixedQueue<Completion>;

} // namespace weir::endpoint
