// SPDX-License-Identifier: BSD-3-Clause
#include "wire/header_prediction.hpp"

#include "wire/parse.hpp"

namespace weir::wire {

HeaderPrediction::Outcome HeaderPrediction::parse(std::span<const std::uint8_t> frame,
                                                  Packet& packet) {
  if (const HeaderTemplate& headers = nearest_to(frame); headers.matches(frame)) [[likely]] {
    headers.describe(headers.psn_of(frame), packet);
    return Outcome::as_learnt;
  }
  wire::parse(frame, packet);
  return HeaderTemplate::fits(packet) ? learn(frame, packet) : Outcome::parsed;
}

/// What was learnt for the frame's opcode, if that stands where it stood the last time.
const HeaderTemplate& HeaderPrediction::nearest_to(std::span<const std::uint8_t> frame) const {
  const std::uint8_t opcode = bth_offset_ < frame.size() ? frame[bth_offset_] : 0;
  return learnt_[static_cast<std::size_t>(info_of(opcode).position)].headers;
}

HeaderPrediction::Outcome HeaderPrediction::learn(std::span<const std::uint8_t> frame,
                                                  const Packet& packet) {
  Learnt& learnt = learnt_[static_cast<std::size_t>(packet.opcode.position)];
  if (!learnt.headers.is_empty() && !learnt.pace.misses()) {
    return Outcome::parsed;
  }
  learnt.pace.learns();
  learnt.headers.learn(frame);
  bth_offset_ = packet.bth_offset;
  return Outcome::learnt;
}

} // namespace weir::wire
