// SPDX-License-Identifier: BSD-3-Clause
#include "recovery/frame_template.hpp"

#include "wire/ipv4_checksum.hpp"

#include <cassert>
#include <cstring>
#include <utility>

namespace weir::recovery {
namespace {

constexpr std::uint8_t kFlagsOfConnection = 0x4f; // MigReq and TVer (IBTA §9.2); not SE and PadCnt

bool has_udp(wire::Encapsulation encapsulation) {
  return encapsulation != wire::Encapsulation::v1_grh;
}

template <typename Header>
void exchange_addresses(Header& header) {
  std::swap(header.source, header.destination);
}

} // namespace

FrameTemplate::FrameTemplate(const wire::ParsedBytes& frame) : packet_(frame.packet) {
  const std::size_t bytes = frame.packet.bth_offset + sizeof(wire::Bth);
  assert(bytes <= kMostBytes);
  std::memcpy(headers_.data(), frame.data, bytes);
  bytes_ = static_cast<std::uint16_t>(bytes);
  if (has_udp(packet_.encapsulation)) {
    const std::size_t udp_at = packet_.bth_offset - sizeof(wire::UdpHeader);
    wire::view_as<wire::UdpHeader>(headers_.data() + udp_at).checksum.set(0);
  }
}

FrameTemplate FrameTemplate::opposite(const wire::ParsedBytes& frame,
                                      std::uint32_t destination_qp) {
  FrameTemplate other(frame);
  std::uint8_t* headers = other.headers_.data();
  exchange_addresses(wire::view_as<wire::EthernetHeader>(headers));
  std::uint8_t* ip = headers + other.packet_.ip_offset;
  if (other.packet_.encapsulation == wire::Encapsulation::v2_ipv4) {
    exchange_addresses(wire::view_as<wire::Ipv4Header>(ip));
  } else {
    exchange_addresses(wire::view_as<wire::Ipv6Header>(ip));
  }
  other.packet_.destination_qp = destination_qp;
  wire::view_as<wire::Bth>(headers + other.packet_.bth_offset).destination_qp.set(destination_qp);
  return other.unmarked();
}

FrameTemplate FrameTemplate::unmarked() const {
  constexpr unsigned marked = 0b11;
  constexpr unsigned last_bit = 0b01; // without it: ECT(0), as hosts send it
  FrameTemplate other(*this);
  std::uint8_t* ip = other.headers_.data() + packet_.ip_offset;
  if (packet_.encapsulation == wire::Encapsulation::v2_ipv4) {
    std::uint8_t& tos = wire::view_as<wire::Ipv4Header>(ip).tos;
    tos = static_cast<std::uint8_t>((tos & marked) == marked ? tos & ~last_bit : tos);
  } else {
    constexpr unsigned class_at = 20; // RFC 8200 §3
    wire::be32& words = wire::view_as<wire::Ipv6Header>(ip).version_class_flow;
    const bool is_marked = (words.get() >> class_at & marked) == marked;
    words.set(is_marked ? words.get() & ~(last_bit << class_at) : words.get());
  }
  return other;
}

void FrameTemplate::take_link_header(const FrameTemplate& other) {
  const bool is_alike = other.packet_.encapsulation == packet_.encapsulation &&
                        other.packet_.ip_offset == packet_.ip_offset;
  if (is_alike && !is_empty()) {
    std::memcpy(headers_.data(), other.headers_.data(), packet_.ip_offset);
  }
}

wire::Bth& FrameTemplate::start(wire::ParsedBytes& frame, wire::Opcode opcode,
                                std::uint32_t psn) const {
  assert(!is_empty());
  std::memcpy(frame.data, headers_.data(), bytes_);
  frame.packet = packet_;
  frame.packet.psn = psn;
  frame.packet.opcode = wire::info_of(static_cast<std::uint8_t>(opcode));
  auto& bth = wire::view_as<wire::Bth>(frame.data + packet_.bth_offset);
  bth.opcode = static_cast<std::uint8_t>(opcode);
  bth.flags &= kFlagsOfConnection;
  bth.reserved_variant = 0; // congestion marks belong to the packet that bore them
  bth.ack_request = 0;
  bth.psn.set(psn);
  return bth;
}

void FrameTemplate::finish(wire::ParsedBytes& frame, std::size_t end) const {
  frame.length = static_cast<std::uint32_t>(end + wire::kIcrcBytes);
  frame.packet.icrc_offset = static_cast<std::uint16_t>(end);
  const std::size_t udp_at = packet_.bth_offset - sizeof(wire::UdpHeader);
  std::uint8_t* ip = frame.data + packet_.ip_offset;
  if (has_udp(packet_.encapsulation)) {
    wire::view_as<wire::UdpHeader>(frame.data + udp_at)
        .length.set(static_cast<std::uint16_t>(frame.length - udp_at));
  }
  if (packet_.encapsulation == wire::Encapsulation::v2_ipv4) {
    auto& header = wire::view_as<wire::Ipv4Header>(ip);
    header.total_length.set(static_cast<std::uint16_t>(frame.length - packet_.ip_offset));
    header.checksum.set(0);
    header.checksum.set(wire::ipv4_checksum(wire::ipv4_sum(ip, header.header_bytes())));
  } else {
    const std::size_t payload = frame.length - packet_.ip_offset - sizeof(wire::Ipv6Header);
    wire::view_as<wire::Ipv6Header>(ip).payload_length.set(static_cast<std::uint16_t>(payload));
  }
}

} // namespace weir::recovery
