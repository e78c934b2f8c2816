// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Wire structs, outermost first. Every field is big-endian or one byte, so sizeof is the length on
/// the wire.

#include "weir/ina.hpp"
#include "wire/address.hpp"
#include "wire/big_endian.hpp"

#include <array>
#include <cstdint>

namespace weir::wire {

enum class EtherType : std::uint16_t {
  ipv4 = 0x0800,
  arp = 0x0806,
  ipv6 = 0x86dd,
  roce_v1 = 0x8915,      // IBTA annex A16
  vlan = 0x8100,         // IEEE 802.1Q
  service_vlan = 0x88a8, // IEEE 802.1ad
  old_qinq = 0x9100,
  experimental = 0x88b5, // IEEE 802 §9.2.3: local; wire::LoopProbe
};

/// Of a VLAN tag: another EtherType lies behind it.
constexpr bool is_tag(EtherType type) {
  return type == EtherType::vlan || type == EtherType::service_vlan || type == EtherType::old_qinq;
}

struct EthernetHeader { // IEEE 802.3 §3.2
  MacAddress destination;
  MacAddress source;
  be16 type;
};

static_assert(sizeof(EthernetHeader) == 14);

struct VlanTag { // what follows a tag's EtherType
  be16 control;
  be16 type;
};

static_assert(sizeof(VlanTag) == 4);

inline constexpr std::uint8_t kProtocolUdp = 17;
inline constexpr std::uint8_t kNextHeaderIba = 0x1b; // IBTA §8.2.3: "IBA transport follows"
inline constexpr std::uint16_t kRocePort = 4791;     // IBTA annex A17.4.2

struct Ipv4Header { // RFC 791
  std::uint8_t version_ihl;
  std::uint8_t tos;
  be16 total_length;
  be16 id;
  be16 fragment;
  std::uint8_t ttl;
  std::uint8_t protocol;
  be16 checksum;
  std::array<std::uint8_t, 4> source;
  std::array<std::uint8_t, 4> destination;

  std::size_t header_bytes() const { return std::size_t{4} * (version_ihl & 0x0f); }

  bool is_fragment() const { return (fragment.get() & 0x3fff) != 0; } // MF or an offset
};

static_assert(sizeof(Ipv4Header) == 20);

struct Ipv6Header { // RFC 8200 §3; a GRH has the same layout (IBTA §8.3)
  be32 version_class_flow;
  be16 payload_length;
  std::uint8_t next_header;
  std::uint8_t hop_limit;
  std::array<std::uint8_t, 16> source;
  std::array<std::uint8_t, 16> destination;

  unsigned version() const { return version_class_flow.get() >> 28; }
};

static_assert(sizeof(Ipv6Header) == 40);

struct UdpHeader { // RFC 768
  be16 source_port;
  be16 destination_port;
  be16 length;
  be16 checksum;
};

static_assert(sizeof(UdpHeader) == 8);

inline constexpr std::uint8_t kAckRequest = 0x80; // IBTA §9.2: AckReq, above seven reserved bits

struct Bth { // IBTA §9.2
  std::uint8_t opcode;
  std::uint8_t flags; // SE, MigReq, PadCnt (2 bits), TVer (4 bits)
  be16 partition;
  std::uint8_t reserved_variant; // FECN, BECN: not covered by the ICRC
  be24 destination_qp;
  std::uint8_t ack_request; // kAckRequest or 0
  be24 psn;

  unsigned pad() const { return (flags >> 4) & 0x3; }

  unsigned transport_version() const { return flags & 0x0f; }
};

static_assert(sizeof(Bth) == 12);

struct Reth { // IBTA §9.3.1
  be64 virtual_address;
  be32 remote_key;
  be32 dma_length;
};

static_assert(sizeof(Reth) == 16);

struct Aeth { // IBTA §9.3.5
  std::uint8_t syndrome;
  be24 message_sequence;
};

static_assert(sizeof(Aeth) == 4);

struct ImmDt { // IBTA §9.3.6
  be32 data;
};

static_assert(sizeof(ImmDt) == 4);

inline constexpr std::size_t kIcrcBytes = 4;

struct InaHeader { // docs/protocol.md §2
  be32 magic;
  std::uint8_t version;
  std::uint8_t operation;
  std::uint8_t data_type;
  std::uint8_t flags;
  be32 ring_id;
  be16 rank;
  be16 world;
  be32 message_id;
  be32 message_length;
  be32 epoch;
  be32 session; // in a host's hello: the incarnation's nonce
  std::uint8_t collective;
  // Of a hello: local ACK timeout, 4.096 us x 2^x (IBTA §9.9); 0: not given.
  std::uint8_t ack_timeout;
  be16 root;
  be32 qp; // of a hello: the sender's own queue pair; 0: not given
};

static_assert(sizeof(InaHeader) == kInaHeaderBytes);

} // namespace weir::wire
