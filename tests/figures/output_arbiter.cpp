// SPDX-License-Identifier: BSD-3-Clause
#include "output_arbiter.hpp"

#include <algorithm>

namespace weir::figures {

OutputArbiter::OutputArbiter(const std::vector<std::uint32_t>& weights) : queues_(weights.size()) {
  // The k-th request to queue q, of w, is at share k/w of the turn.
  std::vector<std::pair<double, std::size_t>> askings;
  for (std::size_t queue = 0; queue < weights.size(); ++queue) {
    for (std::uint32_t asking = 0; asking < weights[queue]; ++asking) {
      askings.emplace_back(static_cast<double>(asking) / weights[queue], queue);
    }
  }
  std::ranges::sort(askings);
  for (const auto& [place, queue] : askings) {
    turn_.push_back(queue);
  }
}

std::size_t OutputArbiter::next(const std::vector<bool>& has_frame) {
  for (std::size_t asked = 0; asked < turn_.size(); ++asked) {
    const std::size_t queue = turn_[at_];
    at_ = (at_ + 1) % turn_.size();
    if (has_frame.at(queue)) {
      return queue;
    }
  }
  return queues_;
}

} // namespace weir::figures
