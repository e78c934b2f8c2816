// SPDX-License-Identifier: BSD-3-Clause
#include "endpoint/queue_pair.hpp"

#include "wire/headers.hpp"
#include "wire/icrc.hpp"
#include "wire/opcode.hpp"
#include "wire/packet.hpp"
#include "wire/parse.hpp"

#include <stdexcept>
#include <string>

namespace weir::endpoint {
namespace {

constexpr std::uint16_t kPartitionKeyMask = 0x7fff; // IBTA §10.9.1.2: the top bit is membership
constexpr std::uint8_t kOtherServices = 0x20;       // BTH opcodes from here on are not RC

const QueuePairConfig& checked(const QueuePairConfig& config) {
  const std::string defect = find_defect(config);
  if (!defect.empty()) {
    throw std::invalid_argument(defect);
  }
  return config;
}

} // namespace

QueuePair::QueuePair(const QueuePairConfig& config, const MemoryTable& memory)
    : config_(checked(config)), writer_(config_),
      completions_(std::size_t{config_.send_depth} + config_.receive_depth),
      requester_(config_, writer_, completions_, statistics_),
      responder_(config_, memory, writer_, completions_, statistics_) {}

PostResult QueuePair::post(const SendRequest& request) {
  return requester_.post(request);
}

PostResult QueuePair::post(const ReceiveRequest& request) {
  return responder_.post(request);
}

void QueuePair::receive(std::span<std::uint8_t> bytes, TimePoint now) {
  wire::ParsedBytes frame;
  frame.data = bytes.data();
  frame.length = static_cast<std::uint32_t>(bytes.size());
  wire::parse(bytes, frame.packet);
  receive(frame, now);
}

void QueuePair::receive(const wire::ParsedBytes& frame, TimePoint now) {
  ++statistics_.packets_received;
  statistics_.bytes_received += frame.length;
  if (!admit(frame)) {
    return;
  }
  if (state_ == State::error) {
    ++statistics_.dropped_in_error;
    return;
  }
  dispatch(frame, now);
  spread_failure();
}

/// IBTA §9.6: whether this packet is intact and from our peer to us.
bool QueuePair::admit(const wire::ParsedBytes& frame) {
  const wire::Packet& packet = frame.packet;
  if (packet.parsed == wire::Parsed::malformed) {
    ++statistics_.malformed;
    return false;
  }
  if (packet.parsed == wire::Parsed::other) {
    ++statistics_.misdirected;
    return false;
  }
  if (!wire::icrc_is_valid(frame)) { // IBTA §7.8.1: silently
    ++statistics_.bad_icrc;
    return false;
  }
  const wire::Bth& bth = frame.bth();
  if (bth.transport_version() != 0) { // IBTA §9.2
    ++statistics_.malformed;
    return false;
  }
  const bool is_ours = packet.encapsulation != wire::Encapsulation::v1_grh &&
                       packet.destination_qp == config_.local_qp &&
                       frame.source() == config_.remote_ip &&
                       frame.destination() == config_.local_ip &&
                       (bth.partition.get() & kPartitionKeyMask) == kPartitionKeyMask;
  if (!is_ours) {
    ++statistics_.misdirected;
  }
  return is_ours;
}

void QueuePair::dispatch(const wire::ParsedBytes& frame, TimePoint now) {
  const std::uint8_t opcode = frame.bth().opcode;
  if (frame.packet.opcode.carries_message() || is_read_request(frame)) {
    responder_.receive(frame);
  } else if (is_read_response(frame)) {
    receive_response(frame, now);
  } else if (opcode == static_cast<std::uint8_t>(wire::Opcode::acknowledge)) {
    receive_acknowledge(frame, now);
  } else if (opcode == static_cast<std::uint8_t>(wire::Opcode::congestion_notification)) {
    ++statistics_.cnps_received;
  } else {
    ++statistics_.unsupported;
    const bool is_answer = opcode == static_cast<std::uint8_t>(wire::Opcode::atomic_acknowledge);
    if (opcode < kOtherServices && !is_answer) {
      responder_.receive(frame); // a request that must be refused
    }
  }
}

void QueuePair::receive_acknowledge(const wire::ParsedBytes& frame, TimePoint now) {
  const std::size_t aeth_offset = frame.packet.bth_offset + sizeof(wire::Bth);
  if (frame.packet.icrc_offset != aeth_offset + sizeof(wire::Aeth)) { // IBTA §9.6: packet length
    ++statistics_.malformed;
    return;
  }
  const auto& aeth = wire::view_as<wire::Aeth>(frame.data + aeth_offset);
  requester_.acknowledge({frame.packet.psn, aeth.syndrome}, now);
}

void QueuePair::receive_response(const wire::ParsedBytes& frame, TimePoint now) {
  const std::optional<ReadResponse> response = read_response_in(frame);
  if (!response) {
    ++statistics_.malformed;
    return;
  }
  requester_.receive(*response, now);
}

std::size_t QueuePair::transmit(std::span<std::uint8_t> buffer, TimePoint now) {
  const std::uint64_t answers = statistics_.read_responses_sent;
  std::size_t frame_bytes = has_answered_ ? requester_.transmit(buffer, now) : 0;
  if (frame_bytes == 0) {
    frame_bytes = responder_.transmit(buffer);
  }
  has_answered_ = statistics_.read_responses_sent != answers;
  if (frame_bytes == 0) {
    frame_bytes = requester_.transmit(buffer, now);
  }
  if (frame_bytes != 0) {
    ++statistics_.packets_sent;
    statistics_.bytes_sent += frame_bytes;
  }
  spread_failure(); // a READ may find its region removed
  return frame_bytes;
}

std::optional<TimePoint> QueuePair::next_deadline() const {
  const TimePoint deadline = requester_.deadline();
  return deadline == kNever ? std::nullopt : std::optional(deadline);
}

void QueuePair::expire(TimePoint now) {
  requester_.expire(now);
  spread_failure();
}

std::optional<Completion> QueuePair::poll() {
  if (completions_.empty()) {
    return std::nullopt;
  }
  const Completion completion = completions_.front();
  completions_.pop();
  if (completion.is_send_queue()) {
    requester_.release();
  } else {
    responder_.release();
  }
  return completion;
}

void QueuePair::close() {
  requester_.fail(Status::flushed);
  spread_failure();
  responder_.drop_answers();
}

/// When one half has failed, fails the other too.
void QueuePair::spread_failure() {
  if (state_ == State::error) {
    return;
  }
  const std::optional<Status> failure =
      responder_.failure() ? responder_.failure() : requester_.failure();
  if (!failure) {
    return;
  }
  state_ = State::error;
  failure_ = failure;
  requester_.fail(Status::flushed);
  responder_.flush(Status::flushed);
}

} // namespace weir::endpoint
