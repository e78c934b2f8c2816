// SPDX-License-Identifier: BSD-3-Clause
#include "network/link.hpp"

#include <algorithm>
#include <cmath>

namespace weir::network {

void Link::send(Time now, std::uint32_t frame_bytes) {
  const double bits = 8.0 * (frame_bytes + kWireOverhead);
  const bool has_rate = traits_.bits_per_ns != 0;
  transmitter_.take(
      now, has_rate ? static_cast<Time>(std::llround(std::ceil(bits / traits_.bits_per_ns))) : 0);
}

bool Link::loses(Content content, Dice& dice) const {
  if (content == Content::answer) {
    return !answers_pass_ || dice.chance(traits_.answer_loss);
  }
  return dice.chance(traits_.loss);
}

Time Link::arrival(Dice& dice) {
  const bool is_late =
      traits_.spread != 0 && (traits_.late == kAlways || dice.chance(traits_.late));
  const Time arrival =
      transmitter_.free_from() + traits_.delay + (is_late ? dice.below(traits_.spread) : 0);
  if (traits_.order == LinkTraits::Order::free) {
    return arrival;
  }
  last_arrival_ = std::max(last_arrival_ + 1, arrival);
  return last_arrival_;
}

} // namespace weir::network
