// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "endpoint/config.hpp"
#include "endpoint/two_pieces.hpp"
#include "wire/headers.hpp"
#include "wire/opcode.hpp"
#include "wire/packet.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::endpoint {

enum class AckRequest : std::uint8_t { no = 0, yes = wire::kAckRequest };

/// The fields that differ between a connection's request packets. The opcode decides which are
/// used.
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

/// The opcode decides whether there is an AETH.
struct ReadResponseHeader {
  wire::Opcode opcode = wire::Opcode::read_response_only;
  std::uint32_t psn = 0;
  std::uint32_t message_sequence = 0; // 24 bits
};

/// Builds the RoCEv2 frames of one connection, from Ethernet header to ICRC. Every function returns
/// the frame's length without FCS, or 0 when the buffer is shorter than max_frame_bytes().
class PacketWriter {
 public:
  explicit PacketWriter(const QueuePairConfig& config);

  std::size_t write_request(std::span<std::uint8_t> buffer, const RequestHeader& header,
                            const Gather& payload);
  std::size_t write_read_response(std::span<std::uint8_t> buffer, const ReadResponseHeader& header,
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
  std::size_t finish_payload(std::uint8_t* frame, std::uint8_t* at, const Gather& payload);
  std::size_t finish(std::uint8_t* frame, std::size_t end);

  // The first bytes of every frame, with lengths of zero.
  std::array<std::uint8_t, kMaxTemplate> template_{};
  std::size_t template_bytes_ = 0;
  std::size_t max_frame_bytes_ = 0;
  std::uint32_t ipv4_sum_ = 0; // one's complement sum of the template's IPv4 header
  wire::ParsedBytes frame_;    // offsets, for the ICRC
};

} // namespace weir::endpoint
