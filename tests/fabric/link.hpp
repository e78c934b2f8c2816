// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "dice.hpp"
#include "event_queue.hpp"

#include <algorithm>
#include <cstdint>

namespace weir::fabric {

struct LinkTraits {
  enum class Order : std::uint8_t { kept, free };

  Ppm loss = 0;
  Ppm answer_loss = 0; // of acknowledgements
  Ppm duplication = 0;
  Ppm corruption = 0;
  Time delay = 1000;
  Time spread = 0; // a random time up to this is added
  Order order = Order::kept;
};

/// One direction between a port and its host.
class Link {
 public:
  explicit Link(const LinkTraits& traits) : traits_(traits) {}

  const LinkTraits& traits() const { return traits_; }

  /// From now on it only delays, and keeps the order.
  void become_reliable() {
    traits_.loss = traits_.answer_loss = traits_.duplication = traits_.corruption = 0;
    traits_.order = LinkTraits::Order::kept;
    answers_pass_ = is_up_ = true;
  }

  void set_up() { is_up_ = true; }

  void set_down() { is_up_ = false; }

  void pass_answers() { answers_pass_ = true; }

  void swallow_answers() { answers_pass_ = false; }

  bool is_up() const { return is_up_; }

  bool loses_data(Dice& dice) const { return !is_up_ || dice.chance(traits_.loss); }

  bool loses_answer(Dice& dice) const {
    return !is_up_ || !answers_pass_ || dice.chance(traits_.answer_loss);
  }

  /// When a frame that is sent now arrives.
  Time arrival(Time now, Dice& dice) {
    const Time arrival =
        now + traits_.delay + (traits_.spread == 0 ? 0 : dice.below(traits_.spread));
    if (traits_.order == LinkTraits::Order::free) {
      return arrival;
    }
    last_arrival_ = std::max(last_arrival_ + 1, arrival);
    return last_arrival_;
  }

 private:
  LinkTraits traits_;
  bool is_up_ = true;
  bool answers_pass_ = true;
  Time last_arrival_ = 0;
};

} // namespace weir::fabric
