// SPDX-License-Identifier: BSD-3-Clause
#include "wire/icrc.hpp"

#include <cassert>
#include <cstddef>
#include <cstring>
#include <initializer_list>

namespace weir::wire {
namespace {

/// The ICRC begins with 8 bytes of ones before the IP header, for an LRH and reserved bits (IBTA
/// annex A17.3.3). The first four cancel the register's initial ones, so the CRC of the other four
/// starts from zero. In the frame their place is the end of the Ethernet header.
constexpr std::size_t kLeadingOnes = 4;

struct MaskedByte {
  std::size_t offset; // in its header
  std::uint8_t ones;
};

/// Masks of headers that follow one another.
class Masks {
 public:
  constexpr Masks leading_ones() const {
    return with(kLeadingOnes, {{0, 0xff}, {1, 0xff}, {2, 0xff}, {3, 0xff}});
  }

  constexpr Masks ipv4() const { // TOS, TTL, checksum
    return with(sizeof(Ipv4Header), {{1, 0xff}, {8, 0xff}, {10, 0xff}, {11, 0xff}});
  }

  constexpr Masks ipv6() const { // class, flow, hop limit; GRH alike
    return with(sizeof(Ipv6Header), {{0, 0x0f}, {1, 0xff}, {2, 0xff}, {3, 0xff}, {7, 0xff}});
  }

  constexpr Masks udp() const { // checksum
    return with(sizeof(UdpHeader), {{6, 0xff}, {7, 0xff}});
  }

  constexpr Masks bth() const { return with(sizeof(Bth), {{4, 0xff}}); } // FECN, BECN, reserved

  constexpr const Ones& ones() const { return ones_; }

 private:
  constexpr Masks with(std::size_t header_bytes, std::initializer_list<MaskedByte> bytes) const {
    Masks longer = *this;
    for (const MaskedByte& byte : bytes) {
      longer.ones_.padded[kFoldBytes + end_ + byte.offset] = byte.ones;
      longer.ones_.bytes = end_ + byte.offset + 1;
    }
    longer.end_ += header_bytes;
    return longer;
  }

  Ones ones_;
  std::size_t end_ = 0; // of the headers so far
};

constexpr Ones kIpv4Ones = Masks().leading_ones().ipv4().ones();
constexpr Ones kUdpOnes = Masks().udp().bth().ones();
constexpr Ones kV2Ipv4Ones = Masks().leading_ones().ipv4().udp().bth().ones();
constexpr Ones kV2Ipv6Ones = Masks().leading_ones().ipv6().udp().bth().ones();
constexpr Ones kV1Ones = Masks().leading_ones().ipv6().bth().ones();

static_assert(kV2Ipv6Ones.bytes <= kMaxOnes);

const Ones& ones_of(Encapsulation encapsulation) {
  switch (encapsulation) {
  case Encapsulation::v1_grh:
    return kV1Ones;
  case Encapsulation::v2_ipv6:
    return kV2Ipv6Ones;
  default:
    return kV2Ipv4Ones;
  }
}

/// With IPv4 options the UDP header is not where kV2Ipv4Ones expects it.
bool has_options(const Packet& packet) {
  return packet.encapsulation == Encapsulation::v2_ipv4 &&
         packet.bth_offset - packet.ip_offset != sizeof(Ipv4Header) + sizeof(UdpHeader);
}

} // namespace

std::uint32_t icrc_prefix(const ParsedBytes& frame, std::size_t end) {
  const Packet& packet = frame.packet;
  assert(packet.ip_offset >= kLeadingOnes && packet.ip_offset <= end);
  const std::span<const std::uint8_t> covered(frame.data + packet.ip_offset - kLeadingOnes,
                                              end - packet.ip_offset + kLeadingOnes);
  if (has_options(packet)) {
    const std::size_t udp = packet.bth_offset - sizeof(UdpHeader) - packet.ip_offset + kLeadingOnes;
    const std::uint32_t ip = crc32_with_ones(kCrcOfZeroRegister, covered.first(udp), kIpv4Ones);
    return crc32_with_ones(ip, covered.subspan(udp), kUdpOnes);
  }
  return crc32_with_ones(kCrcOfZeroRegister, covered, ones_of(packet.encapsulation));
}

std::uint32_t compute_icrc(const ParsedBytes& frame) {
  return icrc_prefix(frame, frame.packet.icrc_offset);
}

void detail::verify_icrc_now(ParsedBytes& frame) {
  const Packet& packet = frame.packet;
  assert(packet.payload_offset <= packet.icrc_offset &&
         packet.icrc_offset + kIcrcBytes <= frame.length);
  const std::size_t bytes = packet.icrc_offset - packet.payload_offset;
  frame.payload_crc = crc32(0, {frame.payload(), bytes});
  const std::uint32_t headers = icrc_prefix(frame, packet.payload_offset);
  const bool is_valid = Crc32Shift(bytes).combine(headers, frame.payload_crc) == stored_icrc(frame);
  frame.icrc = is_valid ? IcrcState::valid : IcrcState::bad;
}

void HeaderIcrc::Word::learn(const ParsedBytes& frame, std::size_t at) {
  offset = static_cast<std::uint16_t>(at);
  value = word_in(frame);
  to_end = Crc32Shift(frame.packet.icrc_offset - at);
}

/// By how much the ICRC changes because of this word. A CRC reads the least byte first.
std::uint32_t HeaderIcrc::Word::change_in(const ParsedBytes& frame) const {
  const std::uint32_t now = word_in(frame);
  return now == value ? 0 : to_end.combine(now ^ value, 0);
}

[[gnu::noinline]] std::uint32_t HeaderIcrc::change_in_others(const ParsedBytes& frame) const {
  return id_.change_in(frame) ^ (has_immediate_ ? immediate_.change_in(frame) : 0);
}

void HeaderIcrc::learn(const ParsedBytes& verified) {
  const Packet& packet = verified.packet;
  share_ = stored_icrc(verified) ^ verified.payload_crc;
  id_.learn(verified, packet.ip_offset + offsetof(Ipv4Header, id));
  psn_.learn(verified, packet.bth_offset + offsetof(Bth, ack_request));
  for (std::size_t bits = 0; bits < carries_.size(); ++bits) {
    carries_[bits] = psn_.to_end.combine(__builtin_bswap32((1u << bits) - 1), 0);
  }
  has_immediate_ = packet.opcode.has_immediate != 0;
  if (has_immediate_) {
    immediate_.learn(verified, packet.bth_offset + sizeof(Bth));
  }
}

} // namespace weir::wire
