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

bool Link::loses(Content content, Dice& dice) {
  if (traits_.outages.include(transmitter_.free_from())) {
    return true;
  }
  if (content == Content::answer) {
    return !answers_pass_ || dice.chance(traits_.answer_loss);
  }
  return traits_.mean_burst > 1 ? loses_in_burst(dice) : dice.chance(traits_.loss);
}

/// Gilbert's channel of two states ("Capacity of a burst-noise channel", BSTJ 39, 1960), of which
/// the bad one loses every frame. It ends with 1/burst, so a burst is as long as that on average.
/// It begins with loss / (1 - loss) / burst, so `loss` is the share of frames in it. That is less
/// than a millionth can say, so two draws make it.
bool Link::loses_in_burst(Dice& dice) {
  if (is_in_burst_) {
    is_in_burst_ = !dice.chance(kAlways / traits_.mean_burst);
  } else if (dice.chance(traits_.loss)) {
    const std::uint64_t passing = std::max<Ppm>(1, kAlways - traits_.loss);
    const std::uint64_t begins = std::uint64_t{kAlways} * kAlways / (passing * traits_.mean_burst);
    is_in_burst_ = dice.chance(static_cast<Ppm>(std::min<std::uint64_t>(begins, kAlways)));
  }
  return is_in_burst_;
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
