// SPDX-License-Identifier: BSD-3-Clause
#include "wire/icrc.hpp"

#include "wire/crc32.hpp"

#include <array>
#include <cstring>

namespace weir::wire {
namespace {

constexpr std::size_t kLeadingOnes = 8; // stands for an LRH and reserved bits (IBTA annex A17.3.3)

void mask_ipv4(std::uint8_t* header) {
  auto& ip = view_as<Ipv4Header>(header);
  ip.tos = 0xff;
  ip.ttl = 0xff;
  ip.checksum.set(0xffff);
}

void mask_ipv6(std::uint8_t* header) {
  auto& ip = view_as<Ipv6Header>(header);
  ip.version_class_flow.set(ip.version_class_flow.get() | 0x0fffffff);
  ip.hop_limit = 0xff;
}

} // namespace

std::uint32_t icrc_prefix(const Frame& frame, std::size_t end) {
  const Packet& packet = frame.packet;
  std::array<std::uint8_t, kLeadingOnes + kMaxIcrcPrefix> masked;
  const std::size_t header_bytes = end - packet.ip_offset;
  std::memset(masked.data(), 0xff, kLeadingOnes);
  std::uint8_t* headers = masked.data() + kLeadingOnes;
  std::memcpy(headers, frame.data + packet.ip_offset, header_bytes);
  if (packet.encapsulation == Encapsulation::v2_ipv4) {
    mask_ipv4(headers);
  } else {
    mask_ipv6(headers);
  }
  std::uint8_t* bth = headers + (packet.bth_offset - packet.ip_offset);
  view_as<Bth>(bth).reserved_variant = 0xff;
  if (packet.encapsulation != Encapsulation::v1_grh) {
    view_as<UdpHeader>(bth - sizeof(UdpHeader)).checksum.set(0xffff);
  }
  return crc32(0, {masked.data(), kLeadingOnes + header_bytes});
}

std::uint32_t compute_icrc(const Frame& frame) {
  const Packet& packet = frame.packet;
  const std::size_t variant_end = packet.bth_offset + sizeof(Bth); // nothing past the BTH is masked
  return crc32(icrc_prefix(frame, variant_end),
               {frame.data + variant_end, packet.icrc_offset - variant_end});
}

std::uint32_t stored_icrc(const Frame& frame) {
  const std::uint8_t* at = frame.data + frame.packet.icrc_offset;
  return std::uint32_t{at[0]} | std::uint32_t{at[1]} << 8 | std::uint32_t{at[2]} << 16 |
         std::uint32_t{at[3]} << 24;
}

void store_icrc(Frame& frame, std::uint32_t icrc) {
  std::uint8_t* at = frame.data + frame.packet.icrc_offset;
  for (int shift = 0; shift < 32; shift += 8) {
    *at++ = static_cast<std::uint8_t>(icrc >> shift);
  }
}

} // namespace weir::wire
