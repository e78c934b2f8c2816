// SPDX-License-Identifier: BSD-3-Clause
#include "endpoint/requester.hpp"

#include "wire/psn.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace weir::endpoint {
namespace {

constexpr std::uint8_t kRnrRetryForever = 7;      // IBTA §9.7.5.2.8
constexpr std::uint8_t kSoftRoceRetryForever = 7; // drivers/infiniband/sw/rxe

bool is_write(SendKind kind) {
  return kind == SendKind::write || kind == SendKind::write_immediate;
}

bool has_immediate(SendKind kind) {
  return kind == SendKind::write_immediate || kind == SendKind::send_immediate;
}

CompletionKind completion_of(SendKind kind) {
  if (kind == SendKind::read) {
    return CompletionKind::read;
  }
  return is_write(kind) ? CompletionKind::write : CompletionKind::send;
}

std::size_t bytes_of(const SendRequest& request) {
  return request.kind == SendKind::read ? request.target.size()
                                        : request.header.size() + request.data.size();
}

} // namespace

Requester::Requester(const QueuePairConfig& config, PacketWriter& writer,
                     CompletionQueue& completions, Statistics& statistics)
    : config_(config), writer_(writer), completions_(completions), statistics_(statistics),
      messages_(config.send_depth), reads_(config.send_depth),
      // A responder may acknowledge only on request (rxe does), so every full window has a request.
      ack_request_every_(std::min(config.ack_request_every, std::max(1U, config.window / 2))),
      retries_left_(config.retry_count), rnr_retries_left_(config.rnr_retry) {}

PostResult Requester::post(const SendRequest& request) {
  if (unpolled_ == config_.send_depth) {
    return PostResult::queue_full;
  }
  if (request.kind == SendKind::read && config_.max_rd_atomic == 0) {
    return PostResult::no_reads;
  }
  const std::size_t bytes = bytes_of(request);
  const std::size_t packets = packets_of(bytes, config_.path_mtu);
  if (bytes > kMostMessageBytes || (request.kind == SendKind::read && packets > kMostReadPackets)) {
    return PostResult::too_long;
  }
  const Message message{request, posted_end_, posted_end_ + packets,
                        static_cast<std::uint32_t>(bytes), reads_.end()};
  ++unpolled_;
  if (state_ == State::failed) {
    complete(message, Status::flushed);
    return PostResult::posted;
  }
  posted_end_ = message.end;
  if (message.is_read()) {
    reads_.push(messages_.end());
  }
  messages_.push(message);
  return PostResult::posted;
}

std::uint32_t Requester::psn_of(std::uint64_t packet) const {
  return wire::psn_add(config_.send_psn, static_cast<std::int64_t>(packet));
}

wire::Opcode Requester::opcode_of(const Message& message, std::uint64_t packet) const {
  const SendKind kind = message.request.kind;
  const auto pick = [kind](wire::Opcode send, wire::Opcode write) {
    return is_write(kind) ? write : send;
  };
  const bool is_first = packet == message.first;
  const bool is_last = packet + 1 == message.end;
  if (is_first && is_last) {
    return has_immediate(kind)
               ? pick(wire::Opcode::send_only_immediate, wire::Opcode::write_only_immediate)
               : pick(wire::Opcode::send_only, wire::Opcode::write_only);
  }
  if (is_first) {
    return pick(wire::Opcode::send_first, wire::Opcode::write_first);
  }
  if (!is_last) {
    return pick(wire::Opcode::send_middle, wire::Opcode::write_middle);
  }
  return has_immediate(kind)
             ? pick(wire::Opcode::send_last_immediate, wire::Opcode::write_last_immediate)
             : pick(wire::Opcode::send_last, wire::Opcode::write_last);
}

bool Requester::wants_acknowledgement(const Message& message, std::uint64_t packet) const {
  return packet + 1 == message.end || since_ack_request_ + 1 >= ack_request_every_;
}

std::size_t Requester::write(const Message& message, std::uint64_t packet,
                             std::span<std::uint8_t> buffer) {
  assert(message.first <= packet && packet < message.end);
  const std::uint64_t offset = (packet - message.first) * config_.path_mtu;
  const std::size_t bytes = std::min<std::uint64_t>(config_.path_mtu, message.bytes - offset);
  const RequestHeader header{.opcode = opcode_of(message, packet),
                             .ack_request = wants_acknowledgement(message, packet) ? AckRequest::yes
                                                                                   : AckRequest::no,
                             .psn = psn_of(packet),
                             .remote_address = message.request.remote_address,
                             .remote_key = message.request.remote_key,
                             .message_bytes = message.bytes,
                             .immediate = message.request.immediate};
  const std::size_t frame_bytes =
      writer_.write_request(buffer, header, message.payload().slice(offset, bytes));
  since_ack_request_ = header.ack_request == AckRequest::yes ? 0 : since_ack_request_ + 1;
  return frame_bytes;
}

/// Asks for the data from `packet` on.
std::size_t Requester::write_read(const Message& message, std::uint64_t packet,
                                  std::span<std::uint8_t> buffer) {
  const auto had = static_cast<std::uint32_t>((packet - message.first) * config_.path_mtu);
  const RequestHeader header{.opcode = wire::Opcode::read_request,
                             .ack_request = AckRequest::yes,
                             .psn = psn_of(packet),
                             .remote_address = message.request.remote_address + had,
                             .remote_key = message.request.remote_key,
                             .message_bytes = message.bytes - had,
                             .immediate = 0};
  since_ack_request_ = 0;
  return writer_.write_request(buffer, header, {});
}

bool Requester::waits_for_reads(const Message& message) const {
  const std::uint64_t unanswered = message.reads_before - reads_.first();
  return (message.request.fence == Fence::after_reads && unanswered != 0) ||
         (message.is_read() && unanswered >= config_.max_rd_atomic);
}

std::size_t Requester::transmit(std::span<std::uint8_t> buffer, TimePoint now) {
  if (state_ != State::sending || next_ == posted_end_ || next_ - oldest_ >= config_.window) {
    return 0;
  }
  const Message& message = messages_[cursor_];
  if (waits_for_reads(message)) {
    return 0;
  }
  const std::size_t frame_bytes =
      message.is_read() ? write_read(message, next_, buffer) : write(message, next_, buffer);
  if (frame_bytes == 0) {
    return 0;
  }
  if (next_ < sent_end_) {
    ++statistics_.packets_retransmitted;
  }
  next_ = message.is_read() ? message.end : next_ + 1;
  sent_end_ = std::max(sent_end_, next_);
  if (next_ == message.end) {
    ++cursor_;
  }
  // The timer runs while anything is unacknowledged (IBTA §9.7.6.1.3).
  if (ack_deadline_ == kNever) {
    start_ack_timer(now);
  }
  return frame_bytes;
}

void Requester::acknowledge(const Acknowledgement& acknowledgement, TimePoint now) {
  const std::int32_t ahead = wire::psn_distance(psn_of(oldest_), acknowledgement.psn);
  const std::uint64_t in_flight = state_ == State::failed ? 0 : sent_end_ - oldest_;
  if (ahead < 0 || static_cast<std::uint64_t>(ahead) >= in_flight) {
    return acknowledge_outside(ahead, now);
  }
  const std::uint64_t packet = oldest_ + static_cast<std::uint64_t>(ahead);
  const std::uint8_t value = wire::value_of(acknowledgement.syndrome);
  switch (wire::kind_of(acknowledgement.syndrome)) {
  case wire::SyndromeKind::acknowledge:
    ++statistics_.acks_received;
    accept_ack(packet, now);
    break;
  case wire::SyndromeKind::rnr: // an RNR NAK, like every NAK, acknowledges all packets before its
                                // PSN (IBTA §9.7.5.1.1)
    advance(up_to_missing(packet), now);
    wait_for_receiver(value, now);
    break;
  case wire::SyndromeKind::nak:
    advance(up_to_missing(packet), now);
    refuse(static_cast<wire::NakCode>(value), now);
    break;
  case wire::SyndromeKind::reserved:
    ++statistics_.malformed;
    break;
  }
}

void Requester::accept_ack(std::uint64_t packet, TimePoint now) {
  const std::optional<std::uint64_t> missing = missing_response();
  // soft_roce takes an ACK for the response that it waits for, without data.
  if (missing && (packet > *missing || (packet == *missing && !is_soft_roce()))) {
    return pass_over_missing(packet, now);
  }
  obeys_naks_ = true;
  advance(packet + 1, now);
}

/// The oldest response that has not come. nullopt: no READ is waiting.
std::optional<std::uint64_t> Requester::missing_response() const {
  if (reads_.empty()) {
    return std::nullopt;
  }
  return std::max(oldest_, messages_[reads_.front()].first);
}

/// What of the packets before `packet` has arrived, when the peer says that it has had them all.
std::uint64_t Requester::up_to_missing(std::uint64_t packet) const {
  return std::min(packet, missing_response().value_or(packet));
}

/// The peer answers `packet` though a response at or before it has not come (IBTA:
/// implied NAK). soft_roce ignores it within the same READ.
void Requester::pass_over_missing(std::uint64_t packet, TimePoint now) {
  if (is_soft_roce() && packet < messages_[reads_.front()].end) {
    ++statistics_.stale_acks;
    return start_ack_timer(now);
  }
  advance(up_to_missing(packet), now);
  ask_again(now);
}

/// For the response oldest_, which is missing.
void Requester::ask_again(TimePoint now) {
  if (is_soft_roce() && !obeys_naks_) {
    start_ack_timer(now);
  }
  const bool is_known = is_soft_roce() ? !obeys_naks_ : asked_for_ == oldest_;
  if (is_known || next_ == oldest_) {
    ++statistics_.stale_acks;
    return;
  }
  asked_for_ = oldest_;
  ++statistics_.missing_responses;
  go_back(now);
}

void Requester::receive(const ReadResponse& response, TimePoint now) {
  const std::int32_t ahead = wire::psn_distance(psn_of(oldest_), response.psn);
  const std::uint64_t in_flight = state_ == State::failed ? 0 : sent_end_ - oldest_;
  if (ahead < 0 || static_cast<std::uint64_t>(ahead) >= in_flight) {
    ++statistics_.stale_acks;
    if (is_soft_roce() && ack_deadline_ != kNever) {
      start_ack_timer(now);
    }
    return;
  }
  const std::uint64_t packet = oldest_ + static_cast<std::uint64_t>(ahead);
  const std::optional<std::uint64_t> missing = missing_response();
  if (!missing || packet < *missing) {
    return fail(Status::bad_response); // it answers a write or a send
  }
  if (packet > *missing) {
    return pass_over_missing(packet, now);
  }
  advance(packet, now);
  store(response, now);
}

/// The response oldest_. Which of FIRST and MIDDLE it is depends on where the peer began to answer.
void Requester::store(const ReadResponse& response, TimePoint now) {
  const Message& message = messages_.front();
  assert(message.is_read() && message.first <= oldest_ && oldest_ < message.end);
  const std::uint64_t offset = (oldest_ - message.first) * config_.path_mtu;
  const std::size_t bytes = std::min<std::uint64_t>(config_.path_mtu, message.bytes - offset);
  if (response.payload.size() != bytes || response.ends() != (oldest_ + 1 == message.end)) {
    return fail(Status::bad_response);
  }
  if (bytes != 0) { // memcpy to nullptr is undefined even for no bytes
    std::memcpy(message.request.target.data() + offset, response.payload.data(), bytes);
  }
  ++statistics_.read_responses_received;
  obeys_naks_ = true;
  advance(oldest_ + 1, now);
}

/// IBTA §9.7.6.1: ignored. soft_roce starts its timer anew, and takes what lies above all that was
/// sent for an acknowledgement of each message that was sent whole.
void Requester::acknowledge_outside(std::int32_t ahead, TimePoint now) {
  ++statistics_.stale_acks;
  if (!is_soft_roce() || state_ == State::failed) {
    return;
  }
  if (ack_deadline_ != kNever) {
    start_ack_timer(now);
  }
  if (ahead < 0) {
    return;
  }
  std::uint64_t whole = oldest_;
  for (std::uint64_t i = messages_.first(); i < messages_.end(); ++i) {
    whole = messages_[i].end <= sent_end_ ? messages_[i].end : whole;
  }
  if (whole == up_to_missing(whole)) {
    return advance(whole, now);
  }
  pass_over_missing(whole, now);
}

/// All packets before `to` have arrived.
void Requester::advance(std::uint64_t to, TimePoint now) {
  if (to <= oldest_) {
    return;
  }
  assert(to <= sent_end_);
  oldest_ = to;
  next_ = std::max(next_, oldest_); // an ACK may overtake a retransmission
  while (!messages_.empty() && messages_.front().end <= oldest_) {
    ++statistics_.messages_sent;
    obeys_naks_ = true;
    complete(messages_.front(), Status::success);
    pop_message();
  }
  if (cursor_ < messages_.first()) {
    cursor_ = messages_.first();
  }
  assert(oldest_ <= next_ && next_ <= sent_end_ && sent_end_ <= posted_end_);
  // IBTA §9.9.2.4.1: the counters count retries without progress.
  retries_left_ = config_.retry_count;
  rnr_retries_left_ = config_.rnr_retry;
  if (state_ == State::waiting_rnr) {
    state_ = State::sending;
    rnr_deadline_ = is_soft_roce() ? rnr_deadline_ : kNever; // it still goes back then
  }
  ack_deadline_ = kNever;
  if (next_ > oldest_) {
    start_ack_timer(now);
  }
}

void Requester::start_ack_timer(TimePoint now) {
  ack_deadline_ = config_.ack_timeout == Duration::zero() ? kNever : now + config_.ack_timeout;
}

/// The peer refused packet oldest_; or one above it, when responses from oldest_ on are missing.
/// They will not come any more if the refusal is fatal.
void Requester::refuse(wire::NakCode code, TimePoint now) {
  switch (code) {
  case wire::NakCode::sequence_error:
    if (!obeys_naks_) {
      start_ack_timer(now);
    }
    if (next_ == oldest_ || !obeys_naks_) { // a second NAK: nothing was sent since we went back
      ++statistics_.stale_acks;
      return;
    }
    ++statistics_.naks_received;
    go_back(now);
    return;
  case wire::NakCode::invalid_request:
    ++statistics_.naks_received;
    return fail(Status::remote_invalid_request);
  case wire::NakCode::remote_access:
    ++statistics_.naks_received;
    return fail(Status::remote_access);
  case wire::NakCode::remote_operational:
    ++statistics_.naks_received;
    return fail(Status::remote_operational);
  }
  ++statistics_.malformed; // a reserved code
}

/// Sends again from the oldest unacknowledged packet, if a retry is left (IBTA §9.9.2.4.1: timeouts
/// and NAKs use the same counter).
void Requester::go_back(TimePoint now) {
  if (retries_left_ == 0) {
    return fail(Status::retry_exceeded);
  }
  if (!retries_for_ever()) {
    --retries_left_;
  }
  rewind();
  ack_deadline_ = kNever;
  if (is_soft_roce()) {
    obeys_naks_ = false;
    start_ack_timer(now); // also during an RNR wait, in which nothing is sent
  }
}

void Requester::rewind() {
  next_ = oldest_;
  cursor_ = messages_.first();
  since_ack_request_ = 0;
}

bool Requester::retries_for_ever() const {
  return config_.retry_count == kRetryForever ||
         (is_soft_roce() && config_.retry_count == kSoftRoceRetryForever);
}

void Requester::wait_for_receiver(std::uint8_t timer_code, TimePoint now) {
  if (state_ == State::waiting_rnr) {
    ++statistics_.stale_acks;
    return;
  }
  ++statistics_.rnr_naks_received;
  if (rnr_retries_left_ == 0) {
    return fail(Status::rnr_retry_exceeded);
  }
  if (config_.rnr_retry != kRnrRetryForever) {
    --rnr_retries_left_;
  }
  state_ = State::waiting_rnr;
  rewind();
  ack_deadline_ = is_soft_roce() ? ack_deadline_ : kNever;
  rnr_deadline_ = now + wire::rnr_wait(timer_code);
}

void Requester::expire(TimePoint now) {
  if (now >= rnr_deadline_) {
    rnr_deadline_ = kNever;
    state_ = State::sending;
    rewind(); // it has happened, unless an ACK ended the wait
  }
  if (now >= ack_deadline_) {
    ack_deadline_ = kNever;
    ++statistics_.timeouts;
    go_back(now);
  }
}

/// The oldest.
void Requester::pop_message() {
  if (messages_.front().is_read()) {
    reads_.pop();
  }
  messages_.pop();
}

void Requester::complete(const Message& message, Status status) {
  completions_.push({.id = message.request.id,
                     .status = status,
                     .kind = completion_of(message.request.kind),
                     .bytes = status == Status::success ? message.bytes : 0,
                     .immediate = std::nullopt});
}

void Requester::fail(Status first) {
  if (state_ == State::failed) {
    return;
  }
  state_ = State::failed;
  failure_ = first;
  ack_deadline_ = rnr_deadline_ = kNever;
  for (Status status = first; !messages_.empty(); status = Status::flushed) {
    complete(messages_.front(), status);
    pop_message();
  }
  cursor_ = messages_.end();
}

} // namespace weir::endpoint
