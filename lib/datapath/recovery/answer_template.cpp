// SPDX-License-Identifier: BSD-3-Clause
#include "recovery/answer_template.hpp"

#include "wire/icrc.hpp"
#include "wire/psn.hpp"

namespace weir::recovery {

const wire::Aeth* find_aeth(const wire::ParsedBytes& frame) {
  const wire::Packet& packet = frame.packet;
  const std::size_t aeth_at = packet.bth_offset + sizeof(wire::Bth);
  const auto& bth = wire::view_as<wire::Bth>(frame.data + packet.bth_offset);
  const bool is_answer = bth.opcode == static_cast<std::uint8_t>(wire::Opcode::acknowledge) &&
                         packet.icrc_offset == aeth_at + sizeof(wire::Aeth);
  return is_answer ? &wire::view_as<wire::Aeth>(frame.data + aeth_at) : nullptr;
}

void AnswerTemplate::take(const wire::ParsedBytes& answer, const wire::Aeth& aeth) {
  frame_ = FrameTemplate(answer);
  message_sequence_ = aeth.message_sequence.get();
  if (wire::kind_of(aeth.syndrome) == wire::SyndromeKind::acknowledge) {
    credits_ = wire::value_of(aeth.syndrome);
  }
}

void AnswerTemplate::write(wire::ParsedBytes& frame, std::uint8_t syndrome,
                           std::uint32_t unacknowledged) const {
  const bool is_ack = wire::kind_of(syndrome) == wire::SyndromeKind::acknowledge;
  frame_.start(frame, wire::Opcode::acknowledge,
               is_ack ? wire::psn_add(unacknowledged, -1) : unacknowledged);
  auto& aeth = wire::view_as<wire::Aeth>(frame.data + frame_.bytes());
  aeth.syndrome = is_ack ? wire::ack_syndrome(credits_) : syndrome;
  aeth.message_sequence.set(message_sequence_);
  frame_.finish(frame, frame_.bytes() + sizeof(wire::Aeth));
  wire::store_icrc(frame, wire::compute_icrc(frame));
}

} // namespace weir::recovery
