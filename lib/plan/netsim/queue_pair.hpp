// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Both ends of an RC connection, as in lib/core/endpoint (IBTA §9.7) but without bytes: what is
/// sent, acknowledged, refused and sent again, and when.

#include "netsim/message_list.hpp"
#include "netsim/time.hpp"
#include "netsim/weir_run.hpp"

#include <cstdint>
#include <optional>

namespace weir::netsim {

/// A requester with go-back-N.
class Sender {
 public:
  struct Departure {
    enum class Ack : std::uint8_t { not_asked, asked };

    std::uint32_t packet = 0;
    std::uint32_t message = 0;
    Ack ack = Ack::not_asked;
  };

  Sender(const HostTraits& traits, const MessageList& messages)
      : traits_(traits), messages_(messages), retries_left_(traits.retry_count) {}

  const MessageList& messages() const { return messages_; }

  /// The next message may go.
  void post() { ++posted_; }

  std::uint32_t posted() const { return posted_; }

  /// Messages whose packets are all acknowledged.
  std::uint32_t acknowledged() const { return acknowledged_; }

  /// The next packet, if one may be sent.
  std::optional<Departure> transmit(Time now);

  /// ACK: all packets before `end` have arrived.
  void acknowledge(std::uint32_t end, Time now);

  /// NAK, PSN sequence error: all packets before `packet` have arrived; `packet` has not.
  void refuse(std::uint32_t packet, Time now);

  /// RNR NAK: the same, and the receiver asks for a pause of `wait`.
  void hold(std::uint32_t packet, Time wait, Time now);

  /// When expire() has work; kNever.
  Time deadline() const { return ack_deadline_ < hold_until_ ? ack_deadline_ : hold_until_; }

  void expire(Time now);

  /// It has used all its retries.
  bool has_failed() const { return has_failed_; }

  std::uint64_t sent() const { return sent_; }

  std::uint64_t repeats() const { return repeats_; }

 private:
  bool is_in_flight(std::uint32_t packet) const { return packet >= oldest_ && packet < sent_end_; }

  void advance(std::uint32_t end, Time now);
  void go_back();

  const HostTraits& traits_;
  const MessageList& messages_;
  std::uint32_t posted_ = 0;
  std::uint32_t acknowledged_ = 0;
  std::uint32_t oldest_ = 0; // first packet not acknowledged
  std::uint32_t next_ = 0;
  std::uint32_t sent_end_ = 0;
  std::uint32_t cursor_ = 0; // message of next_
  std::uint32_t since_request_ = 0;
  std::uint32_t retries_left_;
  Time ack_deadline_ = kNever;
  Time hold_until_ = kNever;
  bool has_failed_ = false;
  std::uint64_t sent_ = 0;
  std::uint64_t repeats_ = 0;
};

/// A responder: one NAK per gap, cumulative acknowledgements.
class Receiver {
 public:
  enum class Reply : std::uint8_t { none, acknowledge, refuse };

  explicit Receiver(const MessageList& messages) : messages_(messages) {}

  /// Returns its answer.
  Reply receive(std::uint32_t packet, Sender::Departure::Ack ack);

  std::uint32_t expected() const { return expected_; }

  /// Complete messages.
  std::uint32_t arrived() const { return arrived_; }

 private:
  const MessageList& messages_;
  std::uint32_t expected_ = 0; // packet
  std::uint32_t arrived_ = 0;
  bool has_refused_ = false; // a NAK was sent for the gap at expected_
};

} // namespace weir::netsim
