// SPDX-License-Identifier: BSD-3-Clause
#include "endpoint/packet_writer.hpp"

#include "wire/icrc.hpp"
#include "wire/ipv4_checksum.hpp"
#include "wire/syndrome.hpp"

#include <cstring>

namespace weir::endpoint {
namespace {

constexpr std::size_t kIpOffset = sizeof(wire::EthernetHeader);
// IBTA §10.9.1.2: full member of the default partition.
constexpr std::uint16_t kDefaultPartition = 0xffff;
constexpr std::size_t kMaxExtension = sizeof(wire::Reth) + sizeof(wire::ImmDt);

std::uint8_t* append(std::uint8_t* at, std::span<const std::uint8_t> bytes) {
  if (!bytes.empty()) { // memcpy from nullptr is undefined even for no bytes
    std::memcpy(at, bytes.data(), bytes.size());
  }
  return at + bytes.size();
}

template <typename Struct>
std::uint8_t* append_struct(std::uint8_t* at, const Struct& header) {
  std::memcpy(at, &header, sizeof(header));
  return at + sizeof(header);
}

} // namespace

PacketWriter::PacketWriter(const QueuePairConfig& config) {
  auto& ethernet = wire::view_as<wire::EthernetHeader>(template_.data());
  ethernet.destination = config.remote_mac;
  ethernet.source = config.local_mac;
  if (config.local_ip.is_v4()) {
    prepare_ipv4(config);
  } else {
    prepare_ipv6(config);
  }
  prepare_transport(config);
  max_frame_bytes_ = template_bytes_ + kMaxExtension + config.path_mtu + wire::kIcrcBytes;
}

void PacketWriter::prepare_ipv4(const QueuePairConfig& config) {
  constexpr std::uint8_t version_and_length = 0x45;
  constexpr std::uint16_t dont_fragment =
      0x4000; // an atomic datagram: its ID has no meaning (RFC 6864)
  auto& ethernet = wire::view_as<wire::EthernetHeader>(template_.data());
  ethernet.type.set(static_cast<std::uint16_t>(wire::EtherType::ipv4));
  auto& ip = wire::view_as<wire::Ipv4Header>(template_.data() + kIpOffset);
  ip.version_ihl = version_and_length;
  ip.tos = config.traffic_class;
  ip.fragment.set(dont_fragment);
  ip.ttl = config.hop_limit;
  ip.protocol = wire::kProtocolUdp;
  std::memcpy(ip.source.data(), config.local_ip.bytes.data() + 12, ip.source.size());
  std::memcpy(ip.destination.data(), config.remote_ip.bytes.data() + 12, ip.destination.size());
  ipv4_sum_ = wire::ipv4_sum(template_.data() + kIpOffset, sizeof(ip));
  frame_.packet.encapsulation = wire::Encapsulation::v2_ipv4;
  template_bytes_ = kIpOffset + sizeof(ip);
}

void PacketWriter::prepare_ipv6(const QueuePairConfig& config) {
  auto& ethernet = wire::view_as<wire::EthernetHeader>(template_.data());
  ethernet.type.set(static_cast<std::uint16_t>(wire::EtherType::ipv6));
  auto& ip = wire::view_as<wire::Ipv6Header>(template_.data() + kIpOffset);
  ip.version_class_flow.set(6U << 28 | std::uint32_t{config.traffic_class} << 20);
  ip.next_header = wire::kProtocolUdp;
  ip.hop_limit = config.hop_limit;
  ip.source = config.local_ip.bytes;
  ip.destination = config.remote_ip.bytes;
  frame_.packet.encapsulation = wire::Encapsulation::v2_ipv6;
  template_bytes_ = kIpOffset + sizeof(ip);
}

/// The UDP checksum is zero over IPv6 too, because the ICRC protects the packet (IBTA annex
/// A17.3.2, RFC 6935).
void PacketWriter::prepare_transport(const QueuePairConfig& config) {
  auto& udp = wire::view_as<wire::UdpHeader>(template_.data() + template_bytes_);
  udp.source_port.set(config.udp_source_port);
  udp.destination_port.set(wire::kRocePort);
  template_bytes_ += sizeof(udp);
  frame_.packet.ip_offset = kIpOffset;
  frame_.packet.bth_offset = static_cast<std::uint16_t>(template_bytes_);
  auto& bth = wire::view_as<wire::Bth>(template_.data() + template_bytes_);
  bth.partition.set(kDefaultPartition);
  bth.destination_qp.set(config.remote_qp);
  template_bytes_ += sizeof(bth);
}

wire::Bth& PacketWriter::start(std::uint8_t* frame, wire::Opcode opcode, std::uint32_t psn) const {
  std::memcpy(frame, template_.data(), template_bytes_);
  auto& bth = wire::view_as<wire::Bth>(frame + frame_.packet.bth_offset);
  bth.opcode = static_cast<std::uint8_t>(opcode);
  bth.psn.set(psn);
  return bth;
}

/// Fills in the fields that depend on the length. `end` is the offset after the pad.
std::size_t PacketWriter::finish(std::uint8_t* frame, std::size_t end) {
  const std::size_t frame_bytes = end + wire::kIcrcBytes;
  const std::size_t udp_offset = frame_.packet.bth_offset - sizeof(wire::UdpHeader);
  auto& udp = wire::view_as<wire::UdpHeader>(frame + udp_offset);
  udp.length.set(static_cast<std::uint16_t>(frame_bytes - udp_offset));
  if (frame_.packet.encapsulation == wire::Encapsulation::v2_ipv4) {
    auto& ip = wire::view_as<wire::Ipv4Header>(frame + kIpOffset);
    const auto total_length = static_cast<std::uint16_t>(frame_bytes - kIpOffset);
    ip.total_length.set(total_length);
    ip.checksum.set(wire::ipv4_checksum(ipv4_sum_ + total_length));
  } else {
    auto& ip = wire::view_as<wire::Ipv6Header>(frame + kIpOffset);
    ip.payload_length.set(static_cast<std::uint16_t>(frame_bytes - udp_offset));
  }
  frame_.data = frame;
  frame_.packet.icrc_offset = static_cast<std::uint16_t>(end);
  wire::store_icrc(frame_, wire::compute_icrc(frame_));
  return frame_bytes;
}

std::size_t PacketWriter::write_request(std::span<std::uint8_t> buffer, const RequestHeader& header,
                                        const Gather& payload) {
  if (buffer.size() < max_frame_bytes_) {
    return 0;
  }
  std::uint8_t* const frame = buffer.data();
  const wire::OpcodeInfo& info = wire::info_of(static_cast<std::uint8_t>(header.opcode));
  wire::Bth& bth = start(frame, header.opcode, header.psn);
  bth.ack_request = static_cast<std::uint8_t>(header.ack_request);
  std::uint8_t* at = frame + template_bytes_;
  if (info.has_reth != 0 || header.opcode == wire::Opcode::read_request) {
    at = append_struct(at,
                       wire::Reth{wire::be64(header.remote_address), wire::be32(header.remote_key),
                                  wire::be32(header.message_bytes)});
  }
  if (info.has_immediate != 0) {
    at = append_struct(at, wire::ImmDt{wire::be32(header.immediate)});
  }
  return finish_payload(frame, at, payload);
}

/// Appends payload and pad at `at`.
std::size_t PacketWriter::finish_payload(std::uint8_t* frame, std::uint8_t* at,
                                         const Gather& payload) {
  const std::size_t pad = (0 - payload.size()) & 0x3; // IBTA §9.2.3: PadCnt
  wire::view_as<wire::Bth>(frame + frame_.packet.bth_offset).flags =
      static_cast<std::uint8_t>(pad << 4);
  at = append(append(at, payload.first), payload.second);
  std::memset(at, 0, pad);
  return finish(frame, static_cast<std::size_t>(at - frame) + pad);
}

std::size_t PacketWriter::write_read_response(std::span<std::uint8_t> buffer,
                                              const ReadResponseHeader& header,
                                              const Gather& payload) {
  if (buffer.size() < max_frame_bytes_) {
    return 0;
  }
  std::uint8_t* const frame = buffer.data();
  start(frame, header.opcode, header.psn);
  std::uint8_t* at = frame + template_bytes_;
  if (header.opcode != wire::Opcode::read_response_middle) { // IBTA table 38
    at = append_struct(at, wire::Aeth{wire::kAckUnlimited, wire::be24(header.message_sequence)});
  }
  return finish_payload(frame, at, payload);
}

std::size_t PacketWriter::write_acknowledge(std::span<std::uint8_t> buffer,
                                            const AcknowledgeHeader& header) {
  if (buffer.size() < max_frame_bytes_) {
    return 0;
  }
  std::uint8_t* const frame = buffer.data();
  start(frame, wire::Opcode::acknowledge, header.psn);
  append_struct(frame + template_bytes_,
                wire::Aeth{header.syndrome, wire::be24(header.message_sequence)});
  return finish(frame, template_bytes_ + sizeof(wire::Aeth));
}

} // namespace weir::endpoint
