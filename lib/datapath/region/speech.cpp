// SPDX-License-Identifier: BSD-3-Clause
#include "region/speech.hpp"

#include "wire/crc32.hpp"
#include "wire/headers.hpp"
#include "wire/icrc.hpp"
#include "wire/syndrome.hpp"

#include <array>
#include <cassert>
#include <cstring>

namespace weir::region {
namespace {

constexpr std::uint8_t kSolicitedEvent = 0x80; // IBTA §9.2: SE

template <typename Struct>
std::size_t put(wire::ParsedBytes& frame, std::size_t at, const Struct& header) {
  std::memcpy(frame.data + at, &header, sizeof header);
  return at + sizeof header;
}

/// The immediate is what lies before the payload.
const wire::ImmDt& immediate_of(const wire::ParsedBytes& packet) {
  return wire::view_as<wire::ImmDt>(packet.payload() - sizeof(wire::ImmDt));
}

/// No ICRC covers them. Between IPv4 and IPv6 they have different places, and are left alone.
void take_traffic_class(wire::ParsedBytes& frame, const wire::ParsedBytes& from) {
  if (frame.packet.encapsulation != from.packet.encapsulation) {
    return;
  }
  if (frame.packet.encapsulation == wire::Encapsulation::v2_ipv4) {
    wire::view_as<wire::Ipv4Header>(frame.data + frame.packet.ip_offset).tos =
        wire::view_as<wire::Ipv4Header>(from.data + from.packet.ip_offset).tos;
    return;
  }
  constexpr std::uint32_t traffic_class = 0x0ff0'0000; // RFC 8200 §3
  auto& header = wire::view_as<wire::Ipv6Header>(frame.data + frame.packet.ip_offset);
  const auto& other = wire::view_as<wire::Ipv6Header>(from.data + from.packet.ip_offset);
  header.version_class_flow.set((header.version_class_flow.get() & ~traffic_class) |
                                (other.version_class_flow.get() & traffic_class));
}

} // namespace

std::size_t Speech::copy_bytes(const wire::ParsedBytes& packet) const {
  return headers_.bytes() + sizeof(wire::Reth) + sizeof(wire::ImmDt) + packet.packet.payload_bytes +
         packet.packet.pad + wire::kIcrcBytes;
}

void Speech::answer(wire::ParsedBytes& frame, std::uint8_t syndrome, std::uint32_t psn,
                    std::uint32_t message_sequence) const {
  headers_.start(frame, wire::Opcode::acknowledge, psn);
  wire::Aeth aeth{syndrome, {}};
  aeth.message_sequence.set(message_sequence);
  headers_.finish(frame, put(frame, headers_.bytes(), aeth));
  wire::store_icrc(frame, wire::compute_icrc(frame));
}

void Speech::read(wire::ParsedBytes& frame, const Place& place, std::uint32_t bytes,
                  std::uint32_t psn) const {
  headers_.start(frame, wire::Opcode::read_request, psn).ack_request = wire::kAckRequest;
  const wire::Reth reth{wire::be64(place.address), wire::be32(place.key), wire::be32(bytes)};
  headers_.finish(frame, put(frame, headers_.bytes(), reth));
  wire::store_icrc(frame, wire::compute_icrc(frame));
}

std::uint8_t* Speech::begin_response(wire::ParsedBytes& frame, wire::Opcode opcode,
                                     std::uint32_t psn, std::uint32_t message_sequence) const {
  headers_.start(frame, opcode, psn);
  std::size_t at = headers_.bytes();
  if (opcode != wire::Opcode::read_response_middle) { // IBTA table 38
    wire::Aeth aeth{wire::kAckUnlimited, {}};
    aeth.message_sequence.set(message_sequence);
    at = put(frame, at, aeth);
  }
  return frame.data + at;
}

void Speech::end_response(wire::ParsedBytes& frame, const std::uint8_t* payload,
                          std::size_t bytes) const {
  headers_.finish(frame, static_cast<std::size_t>(payload - frame.data) + bytes);
  wire::store_icrc(frame, wire::compute_icrc(frame));
}

void Speech::notify_congestion(wire::ParsedBytes& frame) const {
  constexpr std::uint8_t becn = 0x40; // IBTA A17.9.3, as the sixteen bytes of zeros
  headers_.start(frame, wire::Opcode::congestion_notification, 0).reserved_variant = becn;
  headers_.finish(frame, put(frame, headers_.bytes(), std::array<std::uint8_t, 16>{}));
  wire::store_icrc(frame, wire::compute_icrc(frame));
}

void Speech::copy(wire::ParsedBytes& frame, const wire::ParsedBytes& packet, const Place& place,
                  std::uint32_t psn, AckRequest ack_request) const {
  assert(packet.icrc == wire::IcrcState::valid);
  const wire::Packet& source = packet.packet;
  const bool has_immediate = source.opcode.has_immediate != 0;
  wire::Bth& bth = headers_.start(
      frame, has_immediate ? wire::Opcode::write_only_immediate : wire::Opcode::write_only, psn);
  bth.ack_request = static_cast<std::uint8_t>(ack_request);
  bth.flags = static_cast<std::uint8_t>(bth.flags | source.pad << 4 |
                                        (packet.bth().flags & kSolicitedEvent));
  take_traffic_class(frame, packet);
  std::size_t at = put(frame, headers_.bytes(),
                       wire::Reth{wire::be64(place.address), wire::be32(place.key),
                                  wire::be32(source.payload_bytes)});
  at = has_immediate ? put(frame, at, immediate_of(packet)) : at;
  const std::size_t bytes = std::size_t{source.payload_bytes} + source.pad;
  std::memcpy(frame.data + at, packet.payload(), bytes);
  headers_.finish(frame, at + bytes);
  const wire::Crc32Shift shift(bytes);
  wire::store_icrc(frame, shift.combine(wire::icrc_prefix(frame, at), packet.payload_crc));
}

} // namespace weir::region
