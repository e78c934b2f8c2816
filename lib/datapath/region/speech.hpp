// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "recovery/frame_template.hpp"
#include "wire/headers.hpp"
#include "wire/packet.hpp"

#include <cstddef>
#include <cstdint>

namespace weir::region {

/// Where a write puts its payload at a target.
struct Place {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
};

enum class AckRequest : std::uint8_t { no = 0, yes = wire::kAckRequest };

/// How the switch's end of a member's connection writes its packets: by headers taken from the
/// member's hello, source and destination exchanged.
class Speech {
 public:
  Speech() = default;

  Speech(const wire::ParsedBytes& hello, std::uint32_t queue_pair)
      : headers_(recovery::FrameTemplate::opposite(hello, queue_pair)) {}

  bool is_empty() const { return headers_.is_empty(); }

  /// Reaches the member by the link header of a packet that it has sent again: no ICRC covers the
  /// hello's. The rest stays.
  void reach_as(const wire::ParsedBytes& repeat) {
    headers_.take_link_header(recovery::FrameTemplate::opposite(repeat, 0));
  }

  static constexpr std::size_t kMostAnswerBytes =
      recovery::FrameTemplate::kMostBytes + sizeof(wire::Aeth) + wire::kIcrcBytes;

  /// Of a copy of the packet.
  std::size_t copy_bytes(const wire::ParsedBytes& packet) const;

  /// Writes an ACK, NAK or RNR NAK with this syndrome, which names this PSN, into a frame with room
  /// for kMostAnswerBytes.
  void answer(wire::ParsedBytes& frame, std::uint8_t syndrome, std::uint32_t psn,
              std::uint32_t message_sequence) const;

  /// Writes a READ of so many bytes into a frame with room for kReadBytes.
  void read(wire::ParsedBytes& frame, const Place& place, std::uint32_t bytes,
            std::uint32_t psn) const;

  static constexpr std::size_t kReadBytes =
      recovery::FrameTemplate::kMostBytes + sizeof(wire::Reth) + wire::kIcrcBytes;

  /// Begins the response to a READ in a frame with room for kMostAnswerBytes and the payload.
  /// Returns where the payload is to be written.
  std::uint8_t* begin_response(wire::ParsedBytes& frame, wire::Opcode opcode, std::uint32_t psn,
                               std::uint32_t message_sequence) const;

  /// Ends it, when its payload of so many bytes, a multiple of 4, is there.
  void end_response(wire::ParsedBytes& frame, const std::uint8_t* payload, std::size_t bytes) const;

  static constexpr std::size_t kCongestionBytes =
      recovery::FrameTemplate::kMostBytes + 16 + wire::kIcrcBytes; // IBTA A17.9.3

  /// Writes a congestion notification (CNP) into a frame with room for kCongestionBytes.
  void notify_congestion(wire::ParsedBytes& frame) const;

  /// Writes what a packet of a WRITE writes, as a WRITE ONLY, into a frame with room for
  /// copy_bytes(). Traffic class and congestion marks are the packet's.
  void copy(wire::ParsedBytes& frame, const wire::ParsedBytes& packet, const Place& place,
            std::uint32_t psn, AckRequest ack_request) const;

 private:
  recovery::FrameTemplate headers_;
};

} // namespace weir::region
