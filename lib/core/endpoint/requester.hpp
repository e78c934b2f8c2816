// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "endpoint/config.hpp"
#include "endpoint/fixed_queue.hpp"
#include "endpoint/packet_writer.hpp"
#include "endpoint/read_packets.hpp"
#include "endpoint/statistics.hpp"
#include "endpoint/time.hpp"
#include "endpoint/work.hpp"
#include "wire/syndrome.hpp"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace weir::endpoint {

/// An incoming ACK or NAK.
struct Acknowledgement {
  std::uint32_t psn = 0;
  std::uint8_t syndrome = 0;
};

/// The sending half of a queue pair. It cuts messages into packets, keeps them until they are
/// acknowledged, and goes back on NAK, RNR NAK and timeout (IBTA §9.7.6).
///
/// A READ has as many numbers as its data has packets. It is one packet of ours, and arrives when
/// its data does: nothing else acknowledges it. What is asked for again is what is missing.
///
/// Packets are counted in 64 bits from the beginning; only frames carry PSNs. So nothing here
/// wraps. oldest_ <= next_ <= sent_end_ <= posted_end_.
class Requester {
 public:
  enum class State : std::uint8_t {
    sending,
    waiting_rnr, // the peer asked to wait until rnr_deadline_
    failed,      // every request completes as flushed
  };

  Requester(const QueuePairConfig& config, PacketWriter& writer, CompletionQueue& completions,
            Statistics& statistics);

  PostResult post(const SendRequest& request);
  void acknowledge(const Acknowledgement& acknowledgement, TimePoint now);
  void receive(const ReadResponse& response, TimePoint now);
  /// The next request packet, or 0 when there is none to send.
  std::size_t transmit(std::span<std::uint8_t> buffer, TimePoint now);
  void expire(TimePoint now);

  TimePoint deadline() const {
    return ack_deadline_ < rnr_deadline_ ? ack_deadline_ : rnr_deadline_;
  }

  /// The owner has polled one of this half's completions; its place is free.
  void release() {
    assert(unpolled_ != 0);
    --unpolled_;
  }

  /// Completes the oldest request with `first` and all others as flushed.
  void fail(Status first);

  State state() const { return state_; }

  /// The newest that is acknowledged, and the newest that was ever sent.
  std::uint32_t acknowledged_psn() const { return psn_of(oldest_ - 1); }

  std::uint32_t sent_psn() const { return psn_of(sent_end_ - 1); }

  /// Why this half failed by itself; nullopt while it has not.
  std::optional<Status> failure() const { return failure_; }

 private:
  struct Message {
    SendRequest request;
    std::uint64_t first = 0; // packet number
    std::uint64_t end = 0;
    std::uint32_t bytes = 0;
    std::uint64_t reads_before = 0; // READs posted before it, ever

    bool is_read() const { return request.kind == SendKind::read; }

    Gather payload() const { return {request.header, request.data}; }
  };

  std::uint32_t psn_of(std::uint64_t packet) const;
  wire::Opcode opcode_of(const Message& message, std::uint64_t packet) const;
  bool wants_acknowledgement(const Message& message, std::uint64_t packet) const;
  std::size_t write(const Message& message, std::uint64_t packet, std::span<std::uint8_t> buffer);
  std::size_t write_read(const Message& message, std::uint64_t packet,
                         std::span<std::uint8_t> buffer);
  bool waits_for_reads(const Message& message) const;
  /// Of packets that are not in flight.
  void acknowledge_outside(std::int32_t ahead, TimePoint now);
  void accept_ack(std::uint64_t packet, TimePoint now);
  std::optional<std::uint64_t> missing_response() const;
  std::uint64_t up_to_missing(std::uint64_t packet) const;
  void pass_over_missing(std::uint64_t packet, TimePoint now);
  void ask_again(TimePoint now);
  void store(const ReadResponse& response, TimePoint now);
  void advance(std::uint64_t to, TimePoint now);
  void refuse(wire::NakCode code, TimePoint now);
  void go_back(TimePoint now);
  /// Sends from the oldest unacknowledged packet next.
  void rewind();
  void start_ack_timer(TimePoint now);

  bool is_soft_roce() const { return config_.stack == Stack::soft_roce; }

  bool retries_for_ever() const;
  void wait_for_receiver(std::uint8_t timer_code, TimePoint now);
  void pop_message();
  void complete(const Message& message, Status status);

  const QueuePairConfig& config_;
  PacketWriter& writer_;
  CompletionQueue& completions_;
  Statistics& statistics_;
  FixedQueue<Message> messages_;
  FixedQueue<std::uint64_t> reads_; // the numbers of those that are READs
  std::uint64_t cursor_ = 0;        // the message of packet next_, or messages_.end()
  std::uint64_t oldest_ = 0;        // first packet not acknowledged
  std::uint64_t next_ = 0;          // next packet to send
  std::uint64_t sent_end_ = 0;      // end of what was ever sent
  std::uint64_t posted_end_ = 0;    // end of the newest posted message
  std::uint32_t unpolled_ = 0;      // requests posted and not yet polled
  std::uint32_t ack_request_every_;
  std::uint32_t since_ack_request_ = 0; // packets since the last AckReq
  std::uint8_t retries_left_;
  std::uint8_t rnr_retries_left_;
  State state_ = State::sending;
  bool obeys_naks_ = true; // soft_roce: not after a retry, until an ACK or a complete message
  // ibta: the response that was last asked for again. Later answers that are on their way show it
  // to be missing too, and say nothing new.
  std::uint64_t asked_for_ = ~std::uint64_t{0};
  std::optional<Status> failure_;
  TimePoint ack_deadline_ = kNever;
  TimePoint rnr_deadline_ = kNever;
};

} // namespace weir::endpoint
