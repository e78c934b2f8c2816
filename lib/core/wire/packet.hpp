// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "wire/address.hpp"
#include "wire/headers.hpp"
#include "wire/opcode.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::wire {

/// A frame with more is no RoCE frame to parse().
inline constexpr std::size_t kMaxVlanTags = 4;

/// How much of a frame parse() understood.
enum class Parsed : std::uint8_t {
  other,     // not RoCE
  malformed, // RoCE by port or EtherType, but its lengths contradict each other; see `defect`
  transport, // RoCE with an opcode that carries no aggregatable message: ACK, READ, UD, CNP, …
  message,   // RC SEND or RDMA WRITE whose lengths all agree
};

/// Why a RoCE frame is malformed.
enum class Defect : std::uint8_t {
  none,
  fragment,         // RFC 791 §3.1: RoCE is never fragmented
  ipv6_extension,   // extension headers before UDP
  length_mismatch,  // Ethernet, IP, UDP, BTH pad and payload disagree
  transport_version // IBTA §9.2: TVer is 0
};

enum class Encapsulation : std::uint8_t { none, v1_grh, v2_ipv4, v2_ipv6 };

/// What parse() found in a frame. Offsets are in bytes from the frame's start.
struct Packet {
  Parsed parsed = Parsed::other;
  Defect defect = Defect::none;
  Encapsulation encapsulation = Encapsulation::none;
  std::uint8_t pad = 0;             // 0 .. 3 bytes after the payload
  std::uint16_t ip_offset = 0;      // IP header or GRH: where the ICRC's input begins
  std::uint16_t bth_offset = 0;     // set for transport and message
  std::uint16_t icrc_offset = 0;    // set for transport and message: where the ICRC's input ends
  std::uint16_t payload_offset = 0; // set for message: past BTH, RETH and immediate
  std::uint16_t payload_bytes = 0;  // set for message: without pad and ICRC
  std::uint32_t destination_qp = 0; // 24 bits
  std::uint32_t psn = 0;            // 24 bits
  OpcodeInfo opcode;                // set for transport and message

  bool operator==(const Packet&) const = default;
};

/// Whether a message's ICRC has been verified, and the outcome.
enum class IcrcState : std::uint8_t { unverified, valid, bad };

/// A frame's bytes and what parse() found in them.
struct ParsedBytes {
  std::uint8_t* data = nullptr;           // Ethernet header
  std::uint32_t length = 0;               // bytes, without FCS
  IcrcState icrc = IcrcState::unverified; // written by verify_icrc
  // Of payload and pad; written by verify_icrc when the ICRC is valid.
  std::uint32_t payload_crc = 0;
  Packet packet;

  std::uint8_t* payload() const { return data + packet.payload_offset; }

  std::span<const std::uint8_t> bytes() const { return {data, length}; }

  /// Of a RoCE frame.
  const Bth& bth() const { return view_as<Bth>(data + packet.bth_offset); }

  /// The addresses of a RoCE frame, from its IP header or GRH. They are not kept beside the frame:
  /// few packets need them, and each byte that is kept is written for every packet.
  IpAddress source() const {
    return packet.encapsulation == Encapsulation::v2_ipv4
               ? IpAddress::from_v4(ip<Ipv4Header>().source.data())
               : IpAddress::from_v6(ip<Ipv6Header>().source.data());
  }

  IpAddress destination() const {
    return packet.encapsulation == Encapsulation::v2_ipv4
               ? IpAddress::from_v4(ip<Ipv4Header>().destination.data())
               : IpAddress::from_v6(ip<Ipv6Header>().destination.data());
  }

 private:
  template <typename Header>
  const Header& ip() const {
    return view_as<Header>(data + packet.ip_offset);
  }
};

} // namespace weir::wire
