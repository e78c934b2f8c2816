// SPDX-License-Identifier: BSD-3-Clause
#include "wire/parse.hpp"

#include "wire/operator_table.hpp"

namespace weir::wire {
namespace {

constexpr unsigned kMaxIpv6Extensions = 8;

/// A frame, and how far parse() has come in it.
struct Cursor {
  std::span<const std::uint8_t> frame;
  std::size_t offset = 0;

  bool has(std::size_t bytes) const { return frame.size() - offset >= bytes; }

  template <typename Struct>
  const Struct& at_offset() const {
    return view_as<Struct>(frame.data() + offset);
  }
};

void mark(Packet& packet, Defect defect) {
  packet.parsed = Parsed::malformed;
  packet.defect = defect;
}

/// Parses from the BTH on. `end` is where the innermost length field puts the ICRC's end. More
/// bytes may lie behind it, as many as they are: Ethernet padding (IEEE 802.3 §4.2.3.3), an FCS
/// that a NIC left there, a monitor's trailer. They are no part of the packet.
void parse_transport(const Cursor& cursor, std::size_t end, Packet& packet) {
  if (end > cursor.frame.size() || end < cursor.offset + sizeof(Bth) + kIcrcBytes) {
    return mark(packet, Defect::length_mismatch); // IBTA §9.6: packet length
  }
  const auto& bth = cursor.at_offset<Bth>();
  packet.bth_offset = static_cast<std::uint16_t>(cursor.offset);
  packet.icrc_offset = static_cast<std::uint16_t>(end - kIcrcBytes);
  packet.opcode = info_of(bth.opcode);
  packet.destination_qp = bth.destination_qp.get();
  packet.psn = bth.psn.get();
  if (!packet.opcode.carries_message()) {
    packet.parsed = Parsed::transport;
    return;
  }
  if (bth.transport_version() != 0) {
    return mark(packet, Defect::transport_version);
  }
  const std::size_t payload = cursor.offset + sizeof(Bth) + packet.opcode.extension_bytes;
  const std::size_t trailer = bth.pad() + kIcrcBytes;
  if (end < payload + trailer) {
    return mark(packet, Defect::length_mismatch);
  }
  const std::size_t payload_bytes = end - payload - trailer;
  if ((payload_bytes + bth.pad()) % 4 != 0) {
    return mark(packet,
                Defect::length_mismatch); // IBTA §9.2.3: PadCnt aligns the payload to 4 bytes
  }
  packet.pad = static_cast<std::uint8_t>(bth.pad());
  packet.payload_offset = static_cast<std::uint16_t>(payload);
  packet.payload_bytes = static_cast<std::uint16_t>(payload_bytes);
  packet.parsed = Parsed::message;
}

/// `ip_end` is where the IP header puts the datagram's end.
void parse_udp(Cursor& cursor, std::size_t ip_end, Packet& packet) {
  if (!cursor.has(sizeof(UdpHeader))) {
    return;
  }
  const auto& udp = cursor.at_offset<UdpHeader>();
  if (udp.destination_port.get() != kRocePort) {
    return;
  }
  if (packet.defect != Defect::none) {
    packet.parsed = Parsed::malformed;
    return;
  }
  if (cursor.offset + udp.length.get() != ip_end) { // RFC 768: length of header and data
    return mark(packet, Defect::length_mismatch);
  }
  cursor.offset += sizeof(UdpHeader);
  parse_transport(cursor, ip_end, packet);
}

void parse_ipv4(Cursor& cursor, Packet& packet) {
  if (!cursor.has(sizeof(Ipv4Header))) {
    return;
  }
  const auto& ip = cursor.at_offset<Ipv4Header>();
  const std::size_t header_bytes = ip.header_bytes();
  if (ip.version_ihl >> 4 != 4 || header_bytes < sizeof(Ipv4Header) || !cursor.has(header_bytes) ||
      ip.protocol != kProtocolUdp) {
    return;
  }
  const bool is_later_fragment = (ip.fragment.get() & 0x1fff) != 0;
  if (is_later_fragment) {
    return; // without a UDP header it cannot be recognised; no NIC reassembles RoCE
  }
  packet.encapsulation = Encapsulation::v2_ipv4;
  packet.defect = ip.is_fragment() ? Defect::fragment : Defect::none;
  const std::size_t ip_end = cursor.offset + ip.total_length.get();
  cursor.offset += header_bytes;
  parse_udp(cursor, ip_end, packet);
}

/// Skips IPv6 extension headers (RFC 8200 §4). nullopt when they are longer than the frame.
std::optional<std::uint8_t> skip_ipv6_extensions(Cursor& cursor, std::uint8_t next_header) {
  constexpr std::uint8_t hop_by_hop = 0;
  constexpr std::uint8_t routing = 43;
  constexpr std::uint8_t fragment = 44;
  constexpr std::uint8_t destination_options = 60;
  for (unsigned i = 0; i < kMaxIpv6Extensions; ++i) {
    const bool is_extension = next_header == hop_by_hop || next_header == routing ||
                              next_header == fragment || next_header == destination_options;
    if (!is_extension) {
      return next_header;
    }
    if (!cursor.has(8)) {
      return std::nullopt;
    }
    const std::uint8_t* extension = cursor.frame.data() + cursor.offset;
    const std::size_t bytes =
        next_header == fragment ? 8 : std::size_t{8} * (std::size_t{extension[1]} + 1);
    if (!cursor.has(bytes)) {
      return std::nullopt;
    }
    next_header = extension[0];
    cursor.offset += bytes;
  }
  return std::nullopt;
}

void parse_ipv6(Cursor& cursor, Packet& packet) {
  if (!cursor.has(sizeof(Ipv6Header)) || cursor.at_offset<Ipv6Header>().version() != 6) {
    return;
  }
  const auto& ip = cursor.at_offset<Ipv6Header>();
  const std::size_t ip_end = cursor.offset + sizeof(Ipv6Header) + ip.payload_length.get();
  packet.encapsulation = Encapsulation::v2_ipv6;
  cursor.offset += sizeof(Ipv6Header);
  const std::size_t after_fixed_header = cursor.offset;
  const auto upper = skip_ipv6_extensions(cursor, ip.next_header);
  if (upper != kProtocolUdp) {
    return;
  }
  packet.defect = cursor.offset == after_fixed_header ? Defect::none : Defect::ipv6_extension;
  parse_udp(cursor, ip_end, packet);
}

void parse_grh(Cursor& cursor, Packet& packet) {
  if (!cursor.has(sizeof(Ipv6Header))) {
    return;
  }
  const auto& grh = cursor.at_offset<Ipv6Header>();
  if (grh.version() != 6 || grh.next_header != kNextHeaderIba) { // IBTA §8.3: IPVer, NxtHdr
    return;
  }
  packet.encapsulation = Encapsulation::v1_grh;
  cursor.offset += sizeof(Ipv6Header);
  parse_transport(cursor, cursor.offset + grh.payload_length.get(), packet); // IBTA §8.3: PayLen
}

} // namespace

void parse(std::span<const std::uint8_t> frame, Packet& packet) {
  packet = {};
  Cursor cursor{frame};
  if (!cursor.has(sizeof(EthernetHeader)) || frame.size() > UINT16_MAX) {
    return;
  }
  std::uint16_t type = cursor.at_offset<EthernetHeader>().type.get();
  cursor.offset = sizeof(EthernetHeader);
  for (std::size_t tags = 0; is_tag(static_cast<EtherType>(type)); ++tags) {
    if (tags == kMaxVlanTags || !cursor.has(sizeof(VlanTag))) {
      return;
    }
    type = cursor.at_offset<VlanTag>().type.get();
    cursor.offset += sizeof(VlanTag);
  }
  packet.ip_offset = static_cast<std::uint16_t>(cursor.offset);
  switch (static_cast<EtherType>(type)) {
  case EtherType::ipv4:
    parse_ipv4(cursor, packet);
    break;
  case EtherType::ipv6:
    parse_ipv6(cursor, packet);
    break;
  case EtherType::roce_v1:
    parse_grh(cursor, packet);
    break;
  default:
    break;
  }
}

const InaHeader* find_ina_header(const ParsedBytes& frame) {
  const Packet& packet = frame.packet;
  if (packet.parsed != Parsed::message || !packet.opcode.starts_message() ||
      packet.payload_bytes < sizeof(InaHeader)) {
    return nullptr;
  }
  const auto& header = view_as<InaHeader>(frame.payload());
  return header.magic.get() == kInaMagic ? &header : nullptr;
}

bool is_hello(const ParsedBytes& frame, const InaHeader& ina) {
  return ina.collective == static_cast<std::uint8_t>(Collective::hello) &&
         frame.packet.payload_bytes >= sizeof(InaHeader) &&
         may_be_table(ina.version, frame.packet.payload_bytes - sizeof(InaHeader));
}

} // namespace weir::wire
