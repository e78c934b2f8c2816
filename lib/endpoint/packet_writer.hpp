// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "endpoint/config.hpp"
#include "wire/headers.hpp"
#include "wire/opcode.hpp"
#include "wire/packet.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::endpoint {

/// A payload in two pieces, the second right after the first.
struct Gather {
  std::span<const std::uint8_t> first;
  std::span<const std::uint8_t> second;

  std::size_t size() const { return first.size() + second.size(); }

  /// `bytes` bytes from `offset` on; the caller has checked that they are there.
  Gather slice(std::size_t offset, std::size_t bytes) const;
};

enum class AckRequest : std::uint8_t { no = 0x00, yes = 0x80 }; // the BTH byte's value

/// What varies between a connection's request packets. The opcode says which fields count.
struct RequestHeader {
  wire::Opcode opcode = wire::Opcode::send_only;
  AckRequest ack_request = AckRequest::no;
  std::uint32_t psn = 0;
  std::uint64_t remote_address = 0;
  std::uint32_t remote_key = 0;
  std::uint32_t message_bytes = 0;
  std::uint32_t immediate = 0;
};

struct AcknowledgeHeader {
  std::uint8_t syndrome = 0;
  std::uint32_t psn = 0;
  std::uint32_t message_sequence = 0; // 24 bits
};

/// Builds the RoCEv2 frames of one connection, Ethernet header to ICRC. Every call returns the
/// frame's length without FCS; the buffer has room for max_frame_bytes(), or the call returns 0.
class PacketWriter {
 public:
  explicit PacketWriter(const QueuePairConfig& config);

  std::size_t write_request(std::span<std::uint8_t> buffer, const RequestHeader& header,
                            const Gather& payload);
  std::size_t write_acknowledge(std::span<std::uint8_t> buffer, const AcknowledgeHeader& header);

  std::size_t max_frame_bytes() const { return max_frame_bytes_; }

 private:
  static constexpr std::size_t kMaxTemplate = sizeof(wire::EthernetHeader) +
                                              sizeof(wire::Ipv6Header) + sizeof(wire::UdpHeader) +
                                              sizeof(wire::Bth);

  void prepare_ipv4(const QueuePairConfig& config);
  void prepare_ipv6(const QueuePairConfig& config);
  void prepare_transport(const QueuePairConfig& config);
  wire::Bth& start(std::uint8_t* frame, wire::Opcode opcode, std::uint32_t psn) const;
  std::size_t finish(std::uint8_t* frame, std::size_t end);

  std::array<std::uint8_t, kMaxTemplate> template_{}; // every frame's first bytes, lengths zero
  std::size_t template_bytes_ = 0;
  std::size_t max_frame_bytes_ = 0;
  std::uint32_t ipv4_sum_ = 0; // one's complement sum of the template's IPv4 header
  wire::ParsedBytes frame_;    // the layout, for the ICRC
};

} // namespace weir::endpoint
