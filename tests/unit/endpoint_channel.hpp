// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// A channel between two queue pairs that loses, duplicates, delays and corrupts, driven by a seed.

#include "endpoint/queue_pair.hpp"
#include "endpoint_support.hpp"
#include "netsim/event_queue.hpp"
#include "network/carrier.hpp"
#include "network/deadline_timer.hpp"
#include "network/packet_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace weir::endpoint {

using network::Dice;
using network::kPercent;
using network::LinkTraits;
using network::Ppm;
using network::Time;

/// Every frame takes 5 µs, a late one up to 60 µs more, so that later ones overtake it.
inline constexpr LinkTraits kCalm{
    .delay = 5000, .spread = 60'000, .late = 0, .order = LinkTraits::Order::free};

/// A link to each of two ends, their timers, and the time.
class Channel : public network::Carrier<network::PacketPool<network::Packet>, std::size_t> {
 public:
  using Ends = std::array<QueuePair*, 2>;

  /// Frames are of `longest_frame` bytes at most.
  Channel(const LinkTraits& traits, std::size_t longest_frame, Dice& dice)
      : Carrier(packets_, dice), packets_(longest_frame), links_{Link(traits), Link(traits)} {}

  TimePoint time() const { return network::endpoint_time(now_); }

  void send(std::size_t to, std::span<const std::uint8_t> bytes) {
    carry(links_[to], packets_.make(bytes), to);
  }

  /// Sets the timer of an end.
  void arm(std::size_t end, const QueuePair& queue_pair) {
    if (const auto time = timers_[end].set(queue_pair.next_deadline())) {
      events_.push(*time, {.end = end});
    }
  }

  /// A frame is under way or a timer runs.
  bool has_events() const { return !events_.empty(); }

  /// Goes on to the next arrival or timer.
  void advance(const Ends& ends) {
    const auto [at, event] = events_.pop();
    now_ = std::max(now_, at);
    if (event.packet != nullptr) {
      ends[event.end]->receive(std::span(event.packet->data, event.packet->length), time());
      packets_.free(*event.packet);
    } else if (timers_[event.end].goes_off(now_)) {
      ends[event.end]->expire(time());
    }
  }

  /// From now on nothing arrives any more but what is under way.
  void fall_silent() {
    links_[0].set_down();
    links_[1].set_down();
  }

 private:
  using Link = network::Link;

  struct Event {
    std::size_t end = 0;
    Packet* packet = nullptr; // none: the end's timer
  };

  Time now() const override { return now_; }

  void arrive(Time time, Packet& packet, const std::size_t& end) override {
    events_.push(time, {end, &packet});
  }

  /// Or cuts the end off.
  void damage(Packet& packet) override {
    if (dice().chance(20 * kPercent)) {
      packet.length = static_cast<std::uint32_t>(dice().below(packet.length));
      return;
    }
    Carrier::damage(packet);
  }

  network::PacketPool<network::Packet> packets_;
  netsim::EventQueue<Event> events_;
  std::array<Link, 2> links_; // by the end that they lead to
  std::array<network::DeadlineTimer, 2> timers_;
  Time now_ = static_cast<Time>(kStart.time_since_epoch().count());
};

inline LinkTraits random_links(Dice& dice) {
  const auto less_than = [&dice](unsigned percent) {
    return static_cast<Ppm>(dice.below(percent) * kPercent);
  };
  LinkTraits links = kCalm;
  links.loss = less_than(6);
  links.duplication = less_than(11);
  links.late = less_than(11);
  links.corruption = less_than(3);
  return links;
}

/// Half of them soon wrap.
inline std::uint32_t random_psn(Dice& dice) {
  return static_cast<std::uint32_t>(dice.chance(50 * kPercent) ? 0xffffff - dice.below(60)
                                                               : dice.below(1 << 24));
}

/// Until all is done, and then until nothing is under way any more, which must do no harm.
template <typename World>
void run(World& world) {
  constexpr std::uint64_t step_limit = 200000;
  std::uint64_t steps = 0;
  for (world.act(); !world.is_done() && !testing::Test::HasFailure(); world.act()) {
    ASSERT_TRUE(world.step()) << "nothing under way, no timer, and not everything done";
    ASSERT_LT(++steps, step_limit) << "no end in sight";
  }
  while (world.step()) {
    world.act();
  }
}

/// What READs alone count.
inline constexpr std::array kReadCounters{
    &Statistics::read_responses_sent, &Statistics::read_responses_received,
    &Statistics::missing_responses, &Statistics::forgotten_reads};

inline void add(Statistics& total, const Statistics& more) {
  for (const CounterInfo& counter : kCounters) {
    total.*counter.value += more.*counter.value;
  }
}

} // namespace weir::endpoint
