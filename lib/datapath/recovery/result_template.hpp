// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "recovery/frame_template.hpp"
#include "wire/message_shape.hpp"
#include "wire/packet.hpp"
#include "wire/sum_stamp.hpp"

#include <cstdint>
#include <span>

namespace weir::recovery {

/// What a message's packets have beyond the headers that all packets of the connection share.
struct MessageHeaders {
  wire::Opcode first{};       // of its FIRST or ONLY
  wire::Opcode last{};        // of its LAST or ONLY
  std::uint8_t solicited = 0; // SE bit of its LAST or ONLY
  wire::Reth reth{};
  wire::ImmDt immediate{};
};

/// One packet of a message, and its sum.
struct ResultPacket {
  const MessageHeaders& headers;
  const wire::MessageShape& shape;
  std::uint64_t message = 0;
  std::uint32_t packets = 0; // of the message
  std::uint32_t k = 0;       // this one's number in it
  std::uint32_t psn = 0;
  wire::SumStamp stamp = wire::SumStamp::total(0);
  std::span<const std::uint8_t> data; // of the sum
  std::uint32_t data_crc = 0;
};

/// Makes the results of one connection again, without the rank's packets: a template for the
/// connection and a few bytes for each message take the place of a copy of every packet.
class ResultTemplate {
 public:
  ResultTemplate() = default;

  /// From the connection's hello, whose INA header is `ina`.
  ResultTemplate(const wire::ParsedBytes& hello, const wire::InaHeader& ina);

  /// Reaches the receiver by the link header of a packet that its sender has sent again. The rest
  /// stays.
  void reach_as(const wire::ParsedBytes& repeat) { frame_.take_link_header(FrameTemplate(repeat)); }

  /// Bytes that a result with this much data may take.
  std::size_t most_bytes(std::size_t data_bytes) const;

  enum class AckRequest : std::uint8_t { no = 0, yes = wire::kAckRequest };

  /// Writes the result into an empty frame with room for most_bytes().
  void write(wire::ParsedBytes& frame, const ResultPacket& result, AckRequest ack_request) const;

 private:
  wire::InaHeader ina_of(const ResultPacket& result) const;

  FrameTemplate frame_;
  wire::InaHeader hello_{};
};

/// Takes down what a packet of the message has that the others do not have.
void keep_headers(MessageHeaders& headers, const wire::ParsedBytes& packet);

} // namespace weir::recovery
