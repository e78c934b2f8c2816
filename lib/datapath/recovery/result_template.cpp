// SPDX-License-Identifier: BSD-3-Clause
#include "recovery/result_template.hpp"

#include "wire/crc32.hpp"
#include "wire/icrc.hpp"

#include <cstring>

namespace weir::recovery {
namespace {

constexpr std::uint8_t kSolicitedEvent = 0x80; // IBTA §9.2: SE
constexpr std::size_t kMostPad = 3;

wire::Opcode opcode_of(const ResultPacket& result) {
  if (result.k + 1 == result.packets) {
    return result.headers.last;
  }
  const auto first = static_cast<std::uint8_t>(result.headers.first);
  // MIDDLE follows FIRST in the table of opcodes, for SEND and RDMA WRITE.
  return static_cast<wire::Opcode>(first + (result.k == 0 ? 0 : 1));
}

template <typename Struct>
std::size_t put(wire::ParsedBytes& frame, std::size_t at, const Struct& header) {
  std::memcpy(frame.data + at, &header, sizeof header);
  return at + sizeof header;
}

} // namespace

ResultTemplate::ResultTemplate(const wire::ParsedBytes& hello, const wire::InaHeader& ina)
    : frame_(FrameTemplate(hello).unmarked()), hello_(ina) {}

std::size_t ResultTemplate::most_bytes(std::size_t data_bytes) const {
  return frame_.bytes() + sizeof(wire::Reth) + sizeof(wire::ImmDt) + sizeof(wire::InaHeader) +
         data_bytes + kMostPad + wire::kIcrcBytes;
}

void ResultTemplate::write(wire::ParsedBytes& frame, const ResultPacket& result,
                           AckRequest ack_request) const {
  const wire::Opcode opcode = opcode_of(result);
  wire::Bth& bth = frame_.start(frame, opcode, result.psn);
  bth.ack_request = static_cast<std::uint8_t>(ack_request);
  wire::Packet& packet = frame.packet;
  std::size_t at = frame_.bytes();
  at = packet.opcode.has_reth != 0 ? put(frame, at, result.headers.reth) : at;
  at = packet.opcode.has_immediate != 0 ? put(frame, at, result.headers.immediate) : at;
  packet.parsed = wire::Parsed::message;
  packet.payload_offset = static_cast<std::uint16_t>(at);
  at = packet.opcode.starts_message() ? put(frame, at, ina_of(result)) : at;
  const std::size_t data_at = at;
  if (!result.data.empty()) {
    std::memcpy(frame.data + at, result.data.data(), result.data.size());
    at += result.data.size();
  }
  packet.payload_bytes = static_cast<std::uint16_t>(at - packet.payload_offset);
  packet.pad = static_cast<std::uint8_t>((0u - packet.payload_bytes) & kMostPad);
  const std::uint8_t solicited = packet.opcode.ends_message() ? result.headers.solicited : 0;
  bth.flags = static_cast<std::uint8_t>(bth.flags | packet.pad << 4 | solicited);
  std::memset(frame.data + at, 0, packet.pad);
  frame_.finish(frame, at + packet.pad);
  const std::uint32_t crc = wire::crc32(result.data_crc, {frame.data + at, packet.pad});
  const wire::Crc32Shift shift(result.data.size() + packet.pad);
  wire::store_icrc(frame, shift.combine(wire::icrc_prefix(frame, data_at), crc));
}

wire::InaHeader ResultTemplate::ina_of(const ResultPacket& result) const {
  wire::InaHeader ina = hello_;
  if (result.shape.collective == Collective::hello) {
    result.stamp.mark(ina);
    return ina;
  }
  ina.operation = static_cast<std::uint8_t>(result.shape.operation);
  ina.data_type = static_cast<std::uint8_t>(result.shape.data_type);
  ina.message_id.set(static_cast<std::uint32_t>(result.message));
  ina.message_length.set(result.shape.data_bytes);
  ina.collective = static_cast<std::uint8_t>(result.shape.collective);
  ina.ack_timeout = 0;
  ina.root.set(result.shape.root);
  ina.qp.set(0);
  result.stamp.mark(ina);
  return ina;
}

void keep_headers(MessageHeaders& headers, const wire::ParsedBytes& packet) {
  const wire::OpcodeInfo& info = packet.packet.opcode;
  const auto& bth = wire::view_as<wire::Bth>(packet.data + packet.packet.bth_offset);
  const std::uint8_t* extension = packet.data + packet.packet.bth_offset + sizeof(wire::Bth);
  if (info.starts_message()) {
    headers.first = static_cast<wire::Opcode>(bth.opcode);
  }
  if (info.has_reth != 0) {
    headers.reth = wire::view_as<wire::Reth>(extension);
    extension += sizeof(wire::Reth);
  }
  if (info.has_immediate != 0) {
    headers.immediate = wire::view_as<wire::ImmDt>(extension);
  }
  if (info.ends_message()) {
    headers.last = static_cast<wire::Opcode>(bth.opcode);
    headers.solicited = bth.flags & kSolicitedEvent;
  }
}

} // namespace weir::recovery
