// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "endpoint/config.hpp"
#include "endpoint/memory.hpp"
#include "endpoint/packet_writer.hpp"
#include "endpoint/requester.hpp"
#include "endpoint/responder.hpp"
#include "endpoint/statistics.hpp"
#include "endpoint/time.hpp"
#include "endpoint/work.hpp"
#include "wire/packet.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace weir::endpoint {

/// One end of a reliable connection over RoCEv2: RDMA WRITE and SEND, each with or without
/// immediate, and RDMA READ, in both directions. It does no I/O, reads no clock, and allocates only
/// in its constructor. One thread at a time. The owner's loop:
///
///   receive() every frame that came; transmit() some frames and send them; poll() until nullopt;
///   when nothing is left to send, sleep until a frame comes or next_deadline(); then expire().
///
/// A peer's READs may ask for frames without end, so the owner looks at what came in between.
class QueuePair {
 public:
  enum class State : std::uint8_t {
    ready, // RTR and RTS in one
    error, // all requests, old and new, complete as flushed; frames are dropped
  };

  /// Throws std::invalid_argument with the text of find_defect. `memory` outlives the queue pair.
  QueuePair(const QueuePairConfig& config, const MemoryTable& memory);
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  PostResult post(const SendRequest& request);
  PostResult post(const ReceiveRequest& request);

  /// A frame from the network, from its Ethernet header on, without FCS. It is neither changed nor
  /// kept.
  void receive(std::span<std::uint8_t> bytes, TimePoint now);
  /// The same for a parsed frame.
  void receive(const wire::ParsedBytes& frame, TimePoint now);

  /// Writes the next frame, replies first, and returns its length; a READ's responses take turns
  /// with requests. 0: nothing to send now. Always 0 when the buffer is shorter than
  /// max_frame_bytes().
  std::size_t transmit(std::span<std::uint8_t> buffer, TimePoint now);

  /// The latest time for the next expire(). nullopt: no timer runs. Any call may change it.
  std::optional<TimePoint> next_deadline() const;
  /// Runs the timers that are due. Early calls have no effect.
  void expire(TimePoint now);

  /// Completions in the order in which they happened; each queue's are in the order of posting.
  std::optional<Completion> poll();

  /// Moves to the error state and flushes, as ibv_modify_qp to IBV_QPS_ERR does.
  void close();

  State state() const { return state_; }

  // Where it stands, for who looks into a standstill: PSNs of request packets, ours that are
  // acknowledged and sent at least once, and the peer's next. Before the first they name the PSN
  // before the first.
  std::uint32_t acknowledged_psn() const { return requester_.acknowledged_psn(); }

  std::uint32_t sent_psn() const { return requester_.sent_psn(); }

  std::uint32_t expected_psn() const { return responder_.expected_psn(); }

  /// Why the queue pair is in error; flushed when it was closed, nullopt when it is ready.
  std::optional<Status> failure() const { return failure_; }

  const Statistics& statistics() const { return statistics_; }

  const QueuePairConfig& config() const { return config_; }

  std::size_t max_frame_bytes() const { return writer_.max_frame_bytes(); }

 private:
  bool admit(const wire::ParsedBytes& frame);
  void dispatch(const wire::ParsedBytes& frame, TimePoint now);
  void receive_acknowledge(const wire::ParsedBytes& frame, TimePoint now);
  void receive_response(const wire::ParsedBytes& frame, TimePoint now);
  void spread_failure();

  const QueuePairConfig config_;
  Statistics statistics_;
  PacketWriter writer_;
  CompletionQueue completions_;
  Requester requester_;
  Responder responder_;
  State state_ = State::ready;
  bool has_answered_ = false; // the last frame was of a READ's responses
  std::optional<Status> failure_;
};

} // namespace weir::endpoint
