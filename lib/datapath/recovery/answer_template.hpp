// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "recovery/frame_template.hpp"
#include "wire/packet.hpp"
#include "wire/syndrome.hpp"

#include <cstdint>

namespace weir::recovery {

/// Bytes of the longest answer.
inline constexpr std::size_t kMostAnswerBytes =
    FrameTemplate::kMostBytes + sizeof(wire::Aeth) + wire::kIcrcBytes;

/// The AETH of an ACK or NAK that parse() called transport; nullptr for any other packet.
const wire::Aeth* find_aeth(const wire::ParsedBytes& frame);

/// How the switch speaks to a requester in its receiver's name: like the receiver's newest
/// acknowledgement. MSN and credits are from that one, so they never run ahead of it (IBTA §9.7.7).
class AnswerTemplate {
 public:
  AnswerTemplate() = default;

  /// Before an acknowledgement has passed: addresses from the hello, MSN 0, no limit of credits.
  AnswerTemplate(const wire::ParsedBytes& hello, std::uint32_t sender_qp)
      : frame_(FrameTemplate::opposite(hello, sender_qp)) {}

  /// Takes an ACK or NAK with this AETH as the newest.
  void take(const wire::ParsedBytes& answer, const wire::Aeth& aeth);

  /// Reaches the sender by the link header of a packet that it has sent again. The rest stays.
  void reach_as(const wire::ParsedBytes& repeat) {
    frame_.take_link_header(FrameTemplate::opposite(repeat, 0));
  }

  /// Writes an ACK, NAK or RNR NAK into a frame with room for kMostAnswerBytes. It acknowledges all
  /// PSNs below `unacknowledged`: a NAK names that PSN, an ACK the one before (IBTA §9.7.5.1.2). Of
  /// an ACK's syndrome the kind counts; the credits are the receiver's newest.
  void write(wire::ParsedBytes& frame, std::uint8_t syndrome, std::uint32_t unacknowledged) const;

 private:
  FrameTemplate frame_;
  std::uint32_t message_sequence_ = 0;
  std::uint8_t credits_ = wire::kAckUnlimited;
};

} // namespace weir::recovery
