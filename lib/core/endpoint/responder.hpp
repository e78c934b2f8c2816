// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "endpoint/config.hpp"
#include "endpoint/fixed_queue.hpp"
#include "endpoint/memory.hpp"
#include "endpoint/packet_writer.hpp"
#include "endpoint/read_answers.hpp"
#include "endpoint/read_packets.hpp"
#include "endpoint/statistics.hpp"
#include "endpoint/two_pieces.hpp"
#include "endpoint/work.hpp"
#include "wire/packet.hpp"
#include "wire/syndrome.hpp"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace weir::endpoint {

/// The receiving half of a queue pair. It checks each request packet, executes those in order, and
/// has at most one reply to send at a time (IBTA §9.7.4, §9.7.5), after the responses to READs that
/// are due.
class Responder {
 public:
  enum class State : std::uint8_t {
    in_sequence,
    refused, // a NAK or RNR NAK is due or sent: packets after the expected PSN are dropped
    failed,
  };

  /// The reply that is due. Each kind acknowledges all packets before its PSN, so a later one
  /// replaces an earlier one.
  enum class Reply : std::uint8_t { none, acknowledge, sequence_error, rnr, fatal };

  Responder(const QueuePairConfig& config, const MemoryTable& memory, PacketWriter& writer,
            CompletionQueue& completions, Statistics& statistics);

  PostResult post(const ReceiveRequest& request);
  /// A message packet, a READ request or an unsupported request from the peer, ICRC verified.
  void receive(const wire::ParsedBytes& frame);
  /// Writes the response or reply that is due and returns its length, or 0.
  std::size_t transmit(std::span<std::uint8_t> buffer);

  void release() {
    assert(unpolled_ != 0);
    --unpolled_;
  }

  /// Completes the oldest receive with `first` and all others as flushed. A fatal NAK that is due
  /// is still sent, and before it the responses to READs that came before what it refuses.
  void flush(Status first);

  /// Reads nothing more. A fatal NAK that is due is still sent.
  void drop_answers() { answers_.clear(); }

  State state() const { return state_; }

  std::uint32_t expected_psn() const { return expected_psn_; }

  std::optional<Status> failure() const { return failure_; }

 private:
  /// The judgement on one packet.
  enum class Verdict : std::uint8_t {
    execute,
    answer, // a READ
    duplicate,
    gap,
    not_ready, // no receive posted
    invalid_request,
    access_error,
    too_long, // for the receive
  };

  enum class Kind : std::uint8_t { none, send, write, read };

  /// The message whose packets are arriving. Its kind is `none` between messages.
  struct Message {
    Kind kind = Kind::none;
    std::uint32_t received = 0; // bytes executed
    std::uint32_t length = 0;   // of a write, from its RETH
    std::uint32_t remote_key = 0;
    std::uint64_t address = 0;
  };

  struct Judgement {
    Verdict verdict;
    Message message{};  // state after the packet
    Scatter target{};   // where the payload goes; set for execute
    ReadRequest read{}; // what to answer; set for answer
  };

  Judgement judge(const wire::ParsedBytes& frame) const;
  Judgement place_send(const wire::Packet& packet, const Message& message) const;
  Judgement place_write(const wire::Packet& packet, const Message& message) const;
  Judgement judge_read(const wire::ParsedBytes& frame) const;
  static Kind kind_of_request(const wire::ParsedBytes& frame);
  bool is_in_turn(const wire::ParsedBytes& frame) const;
  Message message_with(const wire::ParsedBytes& frame) const;
  bool lengths_agree(const wire::Packet& packet, const Message& message) const;
  void execute(const wire::ParsedBytes& frame, const Judgement& judgement);
  void finish_message(const wire::ParsedBytes& frame);
  void repeat(const wire::ParsedBytes& frame);
  void answer(const ReadRequest& read);
  std::size_t transmit_response(std::span<std::uint8_t> buffer, const ReadPiece& piece);
  std::size_t transmit_reply(std::span<std::uint8_t> buffer);
  void refuse(Reply reply);
  bool wants_reply(const wire::ParsedBytes& frame) const;
  /// Refuses the request packet `psn`.
  void fail(Status cause, wire::NakCode code, std::uint32_t psn);
  AcknowledgeHeader reply_header() const;

  const QueuePairConfig& config_;
  const MemoryTable& memory_;
  PacketWriter& writer_;
  CompletionQueue& completions_;
  Statistics& statistics_;
  FixedQueue<ReceiveRequest> receives_;
  ReadAnswers answers_;
  Message message_;
  std::uint32_t expected_psn_;
  std::uint32_t executed_psn_;         // of the newest message packet, no READ
  std::uint32_t message_sequence_ = 0; // messages executed, 24 bits (IBTA §9.7.7.1)
  std::uint32_t unacknowledged_ = 0;   // packets executed since the last reply
  std::uint32_t unpolled_ = 0;
  State state_ = State::in_sequence;
  Reply reply_ = Reply::none;
  wire::NakCode fatal_code_ = wire::NakCode::invalid_request;
  std::uint32_t fatal_psn_ = 0;
  std::optional<Status> failure_;
};

} // namespace weir::endpoint
