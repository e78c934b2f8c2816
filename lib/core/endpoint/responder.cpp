// SPDX-License-Identifier: BSD-3-Clause
#include "endpoint/responder.hpp"

#include "wire/headers.hpp"
#include "wire/packet.hpp"
#include "wire/psn.hpp"

#include <cassert>
#include <cstring>

namespace weir::endpoint {
namespace {

constexpr std::uint8_t kAckRequestBit = 0x80;

const std::uint8_t* extension_of(const wire::ParsedBytes& frame) {
  return frame.data + frame.packet.bth_offset + sizeof(wire::Bth);
}

bool asks_for_acknowledgement(const wire::ParsedBytes& frame) {
  return (frame.bth().ack_request & kAckRequestBit) != 0;
}

std::optional<std::uint32_t> immediate_of(const wire::ParsedBytes& frame) {
  const wire::OpcodeInfo& info = frame.packet.opcode;
  if (info.has_immediate == 0) {
    return std::nullopt;
  }
  const std::uint8_t* at = extension_of(frame) + (info.has_reth != 0 ? sizeof(wire::Reth) : 0);
  return wire::view_as<wire::ImmDt>(at).data.get();
}

void copy(const std::uint8_t* from, const Scatter& to) {
  for (const std::span<std::uint8_t>& piece : {to.first, to.second}) {
    if (!piece.empty()) { // memcpy to nullptr is undefined even for no bytes
      std::memcpy(piece.data(), from, piece.size());
    }
    from += piece.size();
  }
}

} // namespace

Responder::Responder(const QueuePairConfig& config, const MemoryTable& memory, PacketWriter& writer,
                     CompletionQueue& completions, Statistics& statistics)
    : config_(config), memory_(memory), writer_(writer), completions_(completions),
      statistics_(statistics), receives_(config.receive_depth), answers_(config),
      expected_psn_(config.receive_psn), executed_psn_(wire::psn_add(expected_psn_, -1)) {}

PostResult Responder::post(const ReceiveRequest& request) {
  if (unpolled_ == config_.receive_depth) {
    return PostResult::queue_full;
  }
  ++unpolled_;
  receives_.push(request);
  if (state_ == State::failed) {
    flush(Status::flushed);
  }
  return PostResult::posted;
}

void Responder::receive(const wire::ParsedBytes& frame) {
  const Judgement judgement = judge(frame);
  switch (judgement.verdict) {
  case Verdict::execute:
    return execute(frame, judgement);
  case Verdict::answer:
    return answer(judgement.read);
  case Verdict::duplicate:
    return repeat(frame);
  case Verdict::gap:
    ++statistics_.out_of_sequence;
    if (state_ == State::in_sequence) { // one NAK per gap (IBTA §9.7.5.1)
      refuse(Reply::sequence_error);
    }
    return;
  case Verdict::not_ready:
    return refuse(Reply::rnr);
  case Verdict::invalid_request:
    return fail(Status::local_invalid_request, wire::NakCode::invalid_request, expected_psn_);
  case Verdict::access_error:
    return fail(Status::local_protection, wire::NakCode::remote_access, expected_psn_);
  case Verdict::too_long:
    return fail(Status::local_length, wire::NakCode::invalid_request, expected_psn_);
  }
}

/// Checks in the order of IBTA §9.7.4.1: sequence, opcode, length, resources, rights.
Responder::Judgement Responder::judge(const wire::ParsedBytes& frame) const {
  const wire::Packet& packet = frame.packet;
  const std::int32_t ahead = wire::psn_distance(expected_psn_, packet.psn);
  // IBTA §9.7.4.1.2: PSNs in the half of the range before the expected one are duplicates.
  if (ahead != 0) {
    return {ahead < 0 ? Verdict::duplicate : Verdict::gap};
  }
  if (!is_in_turn(frame)) {
    return {Verdict::invalid_request};
  }
  if (is_read_request(frame)) {
    return judge_read(frame);
  }
  const Message message = message_with(frame);
  if (!lengths_agree(packet, message)) {
    return {Verdict::invalid_request};
  }
  return message.kind == Kind::send ? place_send(packet, message) : place_write(packet, message);
}

Responder::Kind Responder::kind_of_request(const wire::ParsedBytes& frame) {
  if (is_read_request(frame)) {
    return Kind::read;
  }
  if (!frame.packet.opcode.carries_message()) {
    return Kind::none;
  }
  const bool is_send = frame.bth().opcode < static_cast<std::uint8_t>(wire::Opcode::write_first);
  return is_send ? Kind::send : Kind::write;
}

/// Atomics never are: this endpoint does not support them.
bool Responder::is_in_turn(const wire::ParsedBytes& frame) const {
  const Kind kind = kind_of_request(frame);
  if (kind == Kind::none) {
    return false;
  }
  if (kind == Kind::read || frame.packet.opcode.starts_message()) {
    return message_.kind == Kind::none;
  }
  return message_.kind == kind;
}

/// The current message after this packet.
Responder::Message Responder::message_with(const wire::ParsedBytes& frame) const {
  Message message = message_;
  if (frame.packet.opcode.starts_message()) {
    message = {.kind = kind_of_request(frame)};
  }
  if (frame.packet.opcode.has_reth != 0) {
    const auto& reth = wire::view_as<wire::Reth>(extension_of(frame));
    message.length = reth.dma_length.get();
    message.remote_key = reth.remote_key.get();
    message.address = reth.virtual_address.get();
  }
  message.received += frame.packet.payload_bytes;
  return message;
}

bool Responder::lengths_agree(const wire::Packet& packet, const Message& message) const {
  const std::uint32_t payload = packet.payload_bytes;
  const bool ends = packet.opcode.ends_message();
  if (payload > config_.path_mtu || (!ends && payload != config_.path_mtu)) {
    return false; // IBTA §9.7.4.1.6: all but the last packet are full
  }
  if (packet.opcode.position == wire::Position::last && payload == 0) {
    return false; // an empty message is an ONLY
  }
  if (message.received > kMostMessageBytes || message.length > kMostMessageBytes) {
    return false;
  }
  if (message.kind == Kind::send) {
    return true;
  }
  return ends ? message.received == message.length : message.received < message.length;
}

Responder::Judgement Responder::place_send(const wire::Packet& packet,
                                           const Message& message) const {
  if (receives_.empty()) {
    return {Verdict::not_ready};
  }
  const Scatter places{receives_.front().header, receives_.front().buffer};
  if (message.received > places.size()) {
    return {Verdict::too_long};
  }
  const std::size_t offset = message.received - packet.payload_bytes;
  return {Verdict::execute, message, places.slice(offset, packet.payload_bytes)};
}

Responder::Judgement Responder::place_write(const wire::Packet& packet,
                                            const Message& message) const {
  if (packet.opcode.has_immediate != 0 && receives_.empty()) { // IBTA §9.4.3
    return {Verdict::not_ready};
  }
  if (message.length == 0) { // IBTA C9-88: nothing is written, so the rkey is not checked
    return {Verdict::execute, message};
  }
  // The first packet checks the whole range, so a bad request writes nothing. Each packet then
  // checks its own range, because a region may be removed in between.
  const std::uint32_t offset = message.received - packet.payload_bytes;
  const std::uint32_t reach = offset == 0 ? message.length : packet.payload_bytes;
  const auto memory =
      memory_.resolve(message.remote_key, message.address + offset, reach, Access::write);
  if (!memory) {
    return {Verdict::access_error};
  }
  return {Verdict::execute, message, {memory->first(packet.payload_bytes), {}}};
}

Responder::Judgement Responder::judge_read(const wire::ParsedBytes& frame) const {
  const std::optional<ReadRequest> read = read_request_in(frame);
  if (!read || read->bytes > kMostMessageBytes || !answers_.has_room()) {
    return {Verdict::invalid_request};
  }
  const bool allowed = read->bytes == 0 || // IBTA C9-88: the rkey is not checked
                       memory_.resolve(read->remote_key, read->address, read->bytes, Access::read);
  if (!allowed) {
    return {Verdict::access_error};
  }
  return {.verdict = Verdict::answer, .read = *read};
}

void Responder::execute(const wire::ParsedBytes& frame, const Judgement& judgement) {
  assert(judgement.target.size() == frame.packet.payload_bytes);
  copy(frame.payload(), judgement.target);
  message_ = judgement.message;
  executed_psn_ = expected_psn_;
  expected_psn_ = wire::psn_add(expected_psn_, 1);
  ++unacknowledged_;
  const bool answers_refusal = reply_ != Reply::none; // replaces a NAK that was not sent yet
  if (answers_refusal || wants_reply(frame)) {
    reply_ = Reply::acknowledge;
  }
  state_ = State::in_sequence;
  if (frame.packet.opcode.ends_message()) {
    finish_message(frame);
  }
}

bool Responder::wants_reply(const wire::ParsedBytes& frame) const {
  if (config_.stack == Stack::soft_roce) {
    return asks_for_acknowledgement(frame);
  }
  return asks_for_acknowledgement(frame) || frame.packet.opcode.ends_message() ||
         unacknowledged_ >= config_.acknowledge_every;
}

void Responder::finish_message(const wire::ParsedBytes& frame) {
  const std::optional<std::uint32_t> immediate = immediate_of(frame);
  const bool is_send = message_.kind == Kind::send;
  if (is_send || immediate) {
    completions_.push(
        {.id = receives_.front().id,
         .status = Status::success,
         .kind = is_send ? CompletionKind::receive : CompletionKind::receive_write_immediate,
         .bytes = message_.received,
         .immediate = immediate});
    receives_.pop();
  }
  message_ = {};
  message_sequence_ = wire::psn_add(message_sequence_, 1);
  ++statistics_.messages_received;
}

/// soft_roce answers the packets after an RNR NAK with a NAK, as those after any other gap.
void Responder::refuse(Reply reply) {
  const bool takes_it_for_a_gap = config_.stack == Stack::soft_roce && reply == Reply::rnr;
  state_ = takes_it_for_a_gap ? State::in_sequence : State::refused;
  reply_ = reply;
}

void Responder::fail(Status cause, wire::NakCode code, std::uint32_t psn) {
  failure_ = cause;
  reply_ = Reply::fatal;
  fatal_code_ = code;
  fatal_psn_ = psn;
  flush(cause == Status::local_length ? cause : Status::flushed);
}

void Responder::flush(Status first) {
  state_ = State::failed;
  if (reply_ != Reply::fatal) {
    reply_ = Reply::none;
    answers_.clear();
  }
  for (Status status = first; !receives_.empty(); status = Status::flushed) {
    completions_.push({.id = receives_.front().id,
                       .status = status,
                       .kind = CompletionKind::receive,
                       .bytes = 0,
                       .immediate = std::nullopt});
    receives_.pop();
  }
}

/// Of a packet below the expected PSN. Messages are acknowledged again and never executed again
/// (IBTA C9-105); READs are executed again as long as they are remembered.
void Responder::repeat(const wire::ParsedBytes& frame) {
  ++statistics_.duplicates;
  if (!is_read_request(frame)) {
    reply_ = reply_ == Reply::none ? Reply::acknowledge : reply_;
    return;
  }
  const std::optional<ReadRequest> read = read_request_in(frame);
  if (!read || !answers_.repeat(*read)) {
    ++statistics_.forgotten_reads;
  }
}

/// Its responses acknowledge all before it. So they replace a reply that was not sent yet.
void Responder::answer(const ReadRequest& read) {
  message_sequence_ = wire::psn_add(message_sequence_, 1);
  answers_.accept(read, message_sequence_);
  expected_psn_ = wire::psn_add(
      expected_psn_, static_cast<std::int64_t>(packets_of(read.bytes, config_.path_mtu)));
  state_ = State::in_sequence;
  reply_ = Reply::none;
  unacknowledged_ = 0;
  ++statistics_.messages_received;
}

/// An ACK never names a READ: its data may be lost, and soft-RoCE would take the ACK for it.
AcknowledgeHeader Responder::reply_header() const {
  switch (reply_) {
  case Reply::none:
  case Reply::acknowledge:
    break;
  case Reply::sequence_error:
    return {wire::nak_syndrome(wire::NakCode::sequence_error), expected_psn_, message_sequence_};
  case Reply::rnr:
    return {wire::rnr_syndrome(config_.rnr_timer), expected_psn_, message_sequence_};
  case Reply::fatal:
    return {wire::nak_syndrome(fatal_code_), fatal_psn_, message_sequence_};
  }
  return {wire::kAckUnlimited, executed_psn_, message_sequence_};
}

std::size_t Responder::transmit(std::span<std::uint8_t> buffer) {
  if (const std::optional<ReadPiece> piece = answers_.next()) {
    return transmit_response(buffer, *piece);
  }
  return reply_ == Reply::none ? 0 : transmit_reply(buffer);
}

/// Or refuses it, when its region was removed since the READ came.
std::size_t Responder::transmit_response(std::span<std::uint8_t> buffer, const ReadPiece& piece) {
  std::span<const std::uint8_t> payload;
  if (piece.bytes != 0) {
    const auto memory = memory_.resolve(piece.remote_key, piece.address, piece.bytes, Access::read);
    if (!memory) {
      answers_.clear();
      fail(Status::local_protection, wire::NakCode::remote_access, piece.header.psn);
      return transmit_reply(buffer);
    }
    payload = *memory;
  }
  const std::size_t frame_bytes = writer_.write_read_response(buffer, piece.header, {payload, {}});
  if (frame_bytes != 0) {
    answers_.sent();
    ++statistics_.read_responses_sent;
  }
  return frame_bytes;
}

std::size_t Responder::transmit_reply(std::span<std::uint8_t> buffer) {
  const AcknowledgeHeader header = reply_header();
  const std::size_t frame_bytes = writer_.write_acknowledge(buffer, header);
  if (frame_bytes == 0) {
    return 0;
  }
  switch (wire::kind_of(header.syndrome)) {
  case wire::SyndromeKind::rnr:
    ++statistics_.rnr_naks_sent;
    break;
  case wire::SyndromeKind::nak:
    ++statistics_.naks_sent;
    break;
  default:
    ++statistics_.acks_sent;
    break;
  }
  reply_ = Reply::none;
  unacknowledged_ = 0;
  return frame_bytes;
}

} // namespace weir::endpoint
