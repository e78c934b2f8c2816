// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "wire/headers.hpp"
#include "wire/opcode.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace weir::wire {

/// What a look at a few fields says of a frame, without parse().
enum class Glance : std::uint8_t {
  other,   // parse() says Parsed::other
  roce_v2, // a RoceV2Glance can be taken of it
  unclear, // only parse() can tell
};

/// The most usual kind of RoCE: untagged, IPv4 without options. Nothing else is known of it;
/// parse() may find it malformed, or a fragment of something else.
struct RoceV2Glance {
  static constexpr std::size_t kIp = sizeof(EthernetHeader);
  static constexpr std::size_t kUdp = kIp + sizeof(Ipv4Header);
  static constexpr std::size_t kBth = kUdp + sizeof(UdpHeader);
  static constexpr std::size_t kLeast = kBth + sizeof(Bth); // bytes of a frame

  explicit RoceV2Glance(std::span<const std::uint8_t> bytes) : frame(bytes) {}

  /// Source and destination as they lie in the frame.
  std::uint64_t addresses() const {
    std::uint64_t both = 0;
    std::memcpy(&both, frame.data() + kIp + offsetof(Ipv4Header, source), sizeof both);
    return both;
  }

  IpAddress source() const { return IpAddress::from_v4(ip().source.data()); }

  IpAddress destination() const { return IpAddress::from_v4(ip().destination.data()); }

  /// Whether find_ina_header() may find one, for all that can be seen without parse().
  bool may_have_ina_header() const {
    const OpcodeInfo& opcode = info_of(view_as<Bth>(frame.data() + kBth).opcode);
    if (!opcode.starts_message()) {
      return false;
    }
    const std::size_t payload = kBth + sizeof(Bth) + opcode.extension_bytes;
    return frame.size() >= payload + sizeof(be32) &&
           view_as<be32>(frame.data() + payload).get() == kInaMagic;
  }

  std::span<const std::uint8_t> frame;

 private:
  const Ipv4Header& ip() const { return view_as<Ipv4Header>(frame.data() + kIp); }
};

inline Glance glance_at_ipv4(std::span<const std::uint8_t> frame) {
  constexpr std::uint8_t without_options = 0x45;
  const auto& ip = view_as<Ipv4Header>(frame.data() + RoceV2Glance::kIp);
  if (ip.protocol != kProtocolUdp) {
    return Glance::other;
  }
  if (ip.version_ihl != without_options) {
    return Glance::unclear;
  }
  const auto& udp = view_as<UdpHeader>(frame.data() + RoceV2Glance::kUdp);
  return udp.destination_port.get() == kRocePort ? Glance::roce_v2 : Glance::other;
}

inline Glance glance_at(std::span<const std::uint8_t> frame) {
  if (frame.size() < RoceV2Glance::kLeast || frame.size() > UINT16_MAX) {
    return Glance::unclear;
  }
  switch (static_cast<EtherType>(view_as<EthernetHeader>(frame.data()).type.get())) {
  case EtherType::ipv4:
    return glance_at_ipv4(frame);
  case EtherType::arp: // it may be about the regions' address
  case EtherType::ipv6:
  case EtherType::roce_v1:
  case EtherType::vlan:
  case EtherType::service_vlan:
  case EtherType::old_qinq:
  case EtherType::experimental: // find_loop_probe() may find one
    return Glance::unclear;
  }
  return Glance::other;
}

} // namespace weir::wire
