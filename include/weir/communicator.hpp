// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The API for workers: all-reduce over a ring of RoCEv2 connections that a Weir switch aggregates
/// (docs/protocol.md §7). One Communicator per process and job.

#include "weir/ina.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

namespace host {
class FrameIo;
class GroupDriver;
struct Request;
} // namespace host

enum class ErrorCode : std::uint8_t {
  rendezvous_timeout, // a rank did not come, or rank 0 was not reached
  peer_died,          // a rank's process ended, or left while others still called
  retry_exceeded,     // packets stayed unacknowledged: switch or link gone, or switch restarted
  // A result came without the RESULT flag: nobody on the path aggregates this ring.
  not_aggregated,
  mismatch,          // ranks disagree on options or on a call
  timeout,           // no progress for `timeout`
  transport_failure, // the device, the socket or the peer's transport failed
};

std::string_view name_of(ErrorCode code);

/// What went wrong, and the rank concerned if it is one rank. A communicator that threw an error is
/// broken: every later call throws it again.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::optional<std::uint16_t> rank, const std::string& message)
      : std::runtime_error(message), code_(code), rank_(rank) {}

  ErrorCode code() const { return code_; }

  std::optional<std::uint16_t> rank() const { return rank_; }

 private:
  ErrorCode code_;
  std::optional<std::uint16_t> rank_;
};

enum class TransportKind : std::uint8_t {
  software, // this library's own RC queue pair over raw Ethernet frames
  verbs,    // a RoCE NIC through libibverbs
};

/// What to do when the hello shows that nobody aggregates.
enum class Fallback : std::uint8_t {
  none, // fail with not_aggregated
  ring, // reduce on the hosts, over the same connections, to the same bits
};

enum class Algorithm : std::uint8_t { in_switch, ring };

/// "switch" or "ring".
std::string_view name_of(Algorithm algorithm);

/// How Algorithm::ring gets the same bits as the switch: folds may start at any rank where the
/// order cannot matter, and start at rank 0 where it can.
enum class RingSchedule : std::uint8_t {
  reduce_scatter, // 2(H-1)/H of the tensor on every link
  chain,          // twice the tensor on most links; more for sums of f16, bf16 and f8
};

/// reduce_scatter for integers, chain for floating point.
RingSchedule ring_schedule(DataType type);
/// "reduce-scatter" or "chain".
std::string_view name_of(RingSchedule schedule);

/// All ranks give the same values, except for rank, device, addresses, loss and seed. The
/// rendezvous compares them.
struct CommunicatorOptions {
  std::vector<std::uint32_t> rings{1}; // ids as in the switch; a tensor is split among them
  std::uint16_t rank = 0;
  std::uint16_t world = 2;
  std::string rendezvous; // HOST:PORT where rank 0 listens
  // For the rendezvous, and without any progress later. Of a pause in which this rank itself was
  // stopped or got no CPU, a tenth of a second counts.
  std::chrono::milliseconds timeout{10'000};
  std::uint32_t window = 8;            // N, messages; as configured in the switch
  std::uint32_t message_bytes = 65536; // longest message, its 40-byte INA header included
  std::uint32_t path_mtu = 1024;       // 256, 512, 1024, 2048 or 4096
  // 0: rank 0 takes wall-clock seconds, so a restarted job has a larger one. A nonce tells runs of
  // the same epoch apart. A caller that sets epochs must set a larger one while an older process
  // may be alive.
  std::uint32_t epoch = 0;
  Fallback fallback = Fallback::none;
  TransportKind transport = TransportKind::software;
  std::string device; // software: a network interface; verbs: an RDMA device such as mlx5_0, rxe0
  std::string ip;     // software: this rank's address, as in the switch's ring
  std::string mac;    // software: empty: the interface's own
  std::uint8_t gid_index = 1; // verbs: the RoCEv2 entry of the port's GID table
  // A packet waits in the switch until the slowest rank has sent its own; see docs/protocol.md §7.
  // Rounded up to 4.096 µs x 2^e. 0: 67 ms in software, whose default retries never end; over
  // verbs, long enough that eight tries cover `timeout`.
  std::chrono::milliseconds ack_timeout{0};
  std::uint8_t retry_count = 7; // software: 7 is no limit; then `timeout` ends the job
  double loss = 0;        // software: the share of our frames that is dropped on purpose, 0 … 0.9
  std::uint64_t seed = 1; // of these drops
};

/// The first defect of the options: what was found and what is allowed. Empty when there is none.
std::string find_defect(const CommunicatorOptions& options);

/// Counts of this rank since the beginning.
struct CommunicatorStatistics {
  std::uint64_t messages_sent = 0;
  std::uint64_t results_received = 0;
  std::optional<std::uint64_t> retransmitted_packets; // none over verbs: only the NIC knows
  std::optional<std::uint64_t> ack_timeouts;          // none over verbs
  std::uint64_t frames_lost_on_purpose = 0;
};

/// An all-reduce under way. The communicator owns its buffers until it is done.
class Pending {
 public:
  Pending() = default;

  /// True once the result is complete; the caller then owns the buffers again. Throws the Error
  /// that ended it. Never blocks for long.
  bool test();
  /// Returns when test() would be true, or throws its error.
  void wait();
  /// Like wait, but for at most `timeout`, which may be milliseconds::max(). False after the
  /// timeout.
  bool wait_for(std::chrono::milliseconds timeout);
  /// Bytes of the result that are here.
  std::size_t bytes_done() const;

 private:
  friend class Communicator;

  explicit Pending(std::shared_ptr<host::Request> request) : request_(std::move(request)) {}

  std::shared_ptr<host::Request> request_;
};

/// One rank's part in a job. Threads may share it and its Pendings; a thread that waits does not
/// block others. If it is destroyed during calls, they end with peer_died and its own rank. In a
/// child made by fork it does nothing: calls throw, the destructor ends nothing, and no connection
/// stays open there. The child may open a communicator of its own.
class Communicator {
 public:
  /// Meets the other ranks, connects to the neighbours and says hello to the switch. Throws
  /// std::invalid_argument with the text of find_defect, or Error, also when there is no memory for
  /// the slots.
  explicit Communicator(const CommunicatorOptions& options);
  /// The software transport over other frames, such as those of a DPDK port.
  Communicator(const CommunicatorOptions& options, std::unique_ptr<host::FrameIo> frames);
  /// Says farewell and stays for ranks that still need an acknowledgement, until every rank has
  /// closed or one has failed, for at most `timeout`. Rank 0 stays two seconds longer, because it
  /// tells the others for whom they wait.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// Sets out[i] to the reduction of every rank's in[i]: the left fold in rank order
  /// (docs/protocol.md §2). `count` elements, may be 0. in == out reduces in place; otherwise they
  /// must not overlap. Every rank makes the same calls in the same order. Throws
  /// std::invalid_argument for a pair that is not is_reducible and for 2^63 bytes or more; else
  /// Error.
  void all_reduce(const void* in, void* out, std::size_t count, DataType type, Operation operation);
  /// The same without waiting. Several may be under way; they are done in order.
  Pending start_all_reduce(const void* in, void* out, std::size_t count, DataType type,
                           Operation operation);

  std::uint16_t rank() const;
  std::uint16_t world() const;
  std::uint32_t epoch() const;
  Algorithm algorithm() const;
  /// Why the switch does not reduce. Empty when it does.
  std::string fallback_reason() const;
  CommunicatorStatistics statistics() const;

 private:
  std::shared_ptr<host::GroupDriver> driver_;
};

} // namespace weir
