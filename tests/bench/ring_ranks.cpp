// SPDX-License-Identifier: BSD-3-Clause
#include "ring_ranks.hpp"

#include "frame_stock.hpp"
#include "wire/headers.hpp"
#include "wire/packet.hpp"

#include <algorithm>

namespace weir::bench {

void RingRanks::add(std::span<const Arrival> frames) {
  std::vector<Arrival>& turn = turns_.emplace_back(frames.begin(), frames.end());
  for (Arrival& frame : turn) {
    if (session_of_) {
      enter_session(frame.bytes, session_of_);
    }
  }
}

/// A turn is a message of each rank. When it is sent, that before kWindow others has come.
void RingRanks::add_data() {
  const Shape& shape = workload_.shape();
  const std::size_t ranks = std::size_t{shape.world} * shape.rings;
  const std::size_t frames = ranks * shape.packets;
  const std::span<const Arrival> data = workload_.data();
  std::span<const Arrival> answers = workload_.answers();
  for (std::size_t at = 0; at < data.size(); at += frames) {
    add(data.subspan(at, frames));
    if (at >= kWindow * frames && !answers.empty()) {
      const std::span<const Arrival> due = answers.first(ranks);
      turns_.back().insert(turns_.back().end(), due.begin(), due.end());
      answers = answers.subspan(ranks);
    }
  }
  for (; !answers.empty(); answers = answers.subspan(ranks)) {
    add(answers.first(ranks));
  }
}

void RingRanks::speak(FarEnds& ends) {
  for (; next_ != turns_.size(); ++next_) {
    const std::vector<Arrival>& turn = turns_[next_];
    if (under_way_ > (kWindow - 1) * turn.size()) {
      return;
    }
    for (const Arrival& frame : turn) {
      ends.send(frame.port, [&](std::span<std::uint8_t> room) {
        std::ranges::copy(frame.bytes, room.begin());
        return frame.bytes.size();
      });
    }
    under_way_ += turn.size();
  }
}

bool RingRanks::hear(std::span<const std::uint8_t> frame, std::uint16_t /*port*/,
                     FarEnds& /*ends*/) {
  if (wire::view_as<wire::EthernetHeader>(frame.data()).source == regions_address().mac) {
    return false;
  }
  --under_way_;
  return true;
}

} // namespace weir::bench
