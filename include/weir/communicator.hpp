// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What a worker calls: all-reduce over a ring of RoCEv2 connections that a Weir switch aggregates
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
class Transport;
class FrameIo;
struct Job;
} // namespace host

enum class ErrorCode : std::uint8_t {
  rendezvous_timeout, // a rank did not come, or rank 0 could not be reached
  peer_died,          // a rank's process ended, or left the job while others still called
  retry_exceeded,     // packets stayed unacknowledged: switch or link gone, switch restarted
  not_aggregated,     // no RESULT flag: nobody on the path aggregates this ring
  mismatch,           // ranks disagree on options or on a call
  timeout,            // nothing moved for `timeout`
  transport_failure,  // the device, the socket or the peer's transport refused
};

std::string_view name_of(ErrorCode code);

/// What went wrong, and which rank it is about where one rank is. A communicator that threw one is
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

/// What to do when hello finds nobody who aggregates.
enum class Fallback : std::uint8_t {
  none, // fail with not_aggregated
  ring, // reduce on the hosts, over the same connections, to the same bits
};

enum class Algorithm : std::uint8_t { in_switch, ring };

/// "switch" or "ring".
std::string_view name_of(Algorithm algorithm);

/// How Algorithm::ring comes to the same bits as the switch: its folds may start at any rank where
/// the order cannot matter, and start at rank 0 where it can.
enum class RingSchedule : std::uint8_t {
  reduce_scatter, // 2(H-1)/H of the tensor on every link
  chain,          // twice the tensor on most links; more for sums of f16, bf16 and f8
};

/// reduce_scatter for integers, chain for floating point.
RingSchedule ring_schedule(DataType type);
/// "reduce-scatter" or "chain".
std::string_view name_of(RingSchedule schedule);

/// All ranks give the same values, but for rank, device, addresses, loss and seed; the rendezvous
/// compares them.
struct CommunicatorOptions {
  std::vector<std::uint32_t> rings{1}; // ids as the switch knows them; a tensor is split among them
  std::uint16_t rank = 0;
  std::uint16_t world = 2;
  std::string rendezvous;                    // HOST:PORT where rank 0 listens
  std::chrono::milliseconds timeout{10'000}; // for the rendezvous, and without any progress later
  std::uint32_t window = 8;                  // N, messages; as configured in the switch
  std::uint32_t message_bytes = 65536;       // longest message, its 40-byte INA header included
  std::uint32_t path_mtu = 1024;             // 256, 512, 1024, 2048 or 4096
  // 0: rank 0 takes wall-clock seconds, so a restarted job's is larger. Runs of the same epoch are
  // told apart by a nonce, but whoever gives epochs gives a larger one while an older process may
  // be alive.
  std::uint32_t epoch = 0;
  Fallback fallback = Fallback::none;
  TransportKind transport = TransportKind::software;
  std::string device; // software: a network interface; verbs: an RDMA device such as mlx5_0, rxe0
  std::string ip;     // software: this rank's address, as the switch's ring names it
  std::string mac;    // software: empty for the interface's own
  std::uint8_t gid_index = 1; // verbs: the RoCEv2 entry of the port's GID table
  // A packet waits in the switch until the slowest rank has sent its own; see docs/protocol.md §7.
  // Rounded up to 4.096 µs x 2^e. 0: 67 ms in software, whose default retries never end; over
  // verbs as much as lets eight tries cover `timeout`.
  std::chrono::milliseconds ack_timeout{0};
  std::uint8_t retry_count = 7; // software: 7 is for ever, and `timeout` ends the job
  double loss = 0; // software: this share of the frames we send is dropped on purpose, 0 … 0.9
  std::uint64_t seed = 1; // of that dice
};

/// What is wrong with the options, what was found and what is allowed; empty when nothing is.
std::string find_defect(const CommunicatorOptions& options);

/// Of this rank since the beginning.
struct CommunicatorStatistics {
  std::uint64_t messages_sent = 0;
  std::uint64_t results_received = 0;
  std::optional<std::uint64_t> retransmitted_packets; // none over verbs: the NIC's to know
  std::optional<std::uint64_t> ack_timeouts;          // as above
  std::uint64_t frames_lost_on_purpose = 0;
};

/// An all-reduce under way. Its buffers belong to the communicator until it is done.
class Pending {
 public:
  Pending() = default;

  /// True once the result is whole and the buffers are the caller's again. Throws the Error that
  /// ended it. Never blocks for long.
  bool test();
  /// Returns when test() would be true, or throws.
  void wait();
  /// As wait, for `timeout` at most, milliseconds::max() included; false when that ran out.
  bool wait_for(std::chrono::milliseconds timeout);
  /// Bytes of the result that are in.
  std::size_t bytes_done() const;

 private:
  friend class Communicator;
  class State;

  explicit Pending(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

/// One rank's part in a job. Threads may share it and what it returns: one that waits holds up no
/// other. Ended while calls are under way, it ends them, for the waiting too, with peer_died and
/// its own rank. In a child made by fork it does nothing: calls throw, its end is nobody's end, and
/// no connection stays open there; the child may open one of its own.
class Communicator {
 public:
  /// Meets the other ranks, connects to the neighbours and says hello to the switch. Throws
  /// std::invalid_argument with find_defect's text, or Error; also when there is no memory for the
  /// slots.
  explicit Communicator(const CommunicatorOptions& options);
  /// The software transport over frames from elsewhere, such as a DPDK port.
  Communicator(const CommunicatorOptions& options, std::unique_ptr<host::FrameIo> frames);
  /// Says farewell and stays for ranks that still need an acknowledgement: until every rank has
  /// closed or one has failed, for `timeout` at most; rank 0, which tells others for whom they
  /// wait, for two seconds more.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// out[i] becomes the reduction of every rank's in[i], the left fold in rank order as
  /// docs/protocol.md §2 has it. `count` elements, 0 included; in == out reduces in place,
  /// otherwise they do not overlap. Every rank makes the same calls in the same order. Throws
  /// std::invalid_argument for a pair that is_reducible denies and for 2^63 bytes or more, or
  /// Error.
  void all_reduce(const void* in, void* out, std::size_t count, DataType type, Operation operation);
  /// The same, to be waited for. Several may be under way; they are done in order.
  Pending start_all_reduce(const void* in, void* out, std::size_t count, DataType type,
                           Operation operation);

  std::uint16_t rank() const;
  std::uint16_t world() const;
  std::uint32_t epoch() const;
  Algorithm algorithm() const;
  /// Why the algorithm is not the switch's; empty when it is.
  std::string fallback_reason() const;
  CommunicatorStatistics statistics() const;

 private:
  friend class Pending;
  class Driver;
  template <typename Opening>
  static std::shared_ptr<Driver> open(const CommunicatorOptions& options, Opening&& open_transport);
  std::shared_ptr<Driver> driver_;
};

} // namespace weir
