// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "netsim/transmitter.hpp"
#include "network/dice.hpp"
#include "network/time.hpp"

#include <cstdint>

namespace weir::network {

/// Bytes of a frame on the wire besides its own: preamble, FCS and gap (IEEE 802.3).
inline constexpr std::uint32_t kWireOverhead = 8 + 4 + 12;

/// The times at which a flapping link is down.
struct Outages {
  Time first = 0;
  Time every = 0; // from one's begin to the next; 0: the link never goes down
  Time duration = 0;

  bool include(Time time) const {
    return every != 0 && time >= first && (time - first) % every < duration;
  }
};

struct LinkTraits {
  enum class Order : std::uint8_t { kept, free };

  double bits_per_ns = 0; // 0: a frame takes no time to send
  Time delay = 1000;
  Time spread = 0;    // 0 … spread more
  Ppm late = kAlways; // share of frames that get a spread
  Order order = Order::kept;
  Ppm loss = 0;
  std::uint32_t mean_burst = 1; // frames lost one after the other; 1: each loss is independent
  Ppm answer_loss = 0;          // of acknowledgements, each independent
  Ppm duplication = 0;
  Ppm corruption = 0;
  Outages outages;
};

/// The kinds of content that a link treats differently.
enum class Content : std::uint8_t { data, answer };

/// One direction between two places. Sends frames one after the other, at its rate.
class Link {
 public:
  explicit Link(const LinkTraits& traits) : traits_(traits) {}

  /// From now on the link only delays frames, and keeps their order.
  void become_reliable() {
    traits_.loss = traits_.answer_loss = traits_.duplication = traits_.corruption = 0;
    traits_.order = LinkTraits::Order::kept;
    traits_.outages = {};
    is_in_burst_ = false;
    answers_pass_ = is_up_ = true;
  }

  void set_up() { is_up_ = true; }

  void set_down() { is_up_ = false; }

  void pass_answers() { answers_pass_ = true; }

  void swallow_answers() { answers_pass_ = false; }

  bool is_up() const { return is_up_; }

  /// When it can begin with another frame.
  Time free_from() const { return transmitter_.free_from(); }

  /// Begins to send a frame at `now`, or after all earlier frames. A lost frame takes its time too.
  void send(Time now, std::uint32_t frame_bytes);

  /// Whether the last frame is lost. A frame whose end leaves during an outage is.
  bool loses(Content content, Dice& dice);

  bool doubles(Dice& dice) const { return dice.chance(traits_.duplication); }

  bool damages(Dice& dice) const { return dice.chance(traits_.corruption); }

  /// When the last frame, or a duplicate of it, arrives.
  Time arrival(Dice& dice);

 private:
  bool loses_in_burst(Dice& dice);

  LinkTraits traits_;
  bool is_up_ = true;
  bool answers_pass_ = true;
  bool is_in_burst_ = false;
  netsim::Transmitter transmitter_;
  Time last_arrival_ = 0;
};

} // namespace weir::network
