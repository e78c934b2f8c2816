// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "netsim/event_queue.hpp"
#include "netsim/network.hpp"
#include "netsim/queue_pair.hpp"
#include "netsim/time.hpp"
#include "netsim/transmitter.hpp"
#include "netsim/weir_run.hpp"
#include "plan/topology.hpp"

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace weir::netsim {

/// A frame of a connection from a rank to the next.
struct Frame {
  enum class Kind : std::uint8_t {
    data,            // a contribution, a partial sum or a result
    acknowledgement, // of everything before `packet`
    refusal,         // NAK: `packet` is missing
    hold,            // RNR NAK: `packet` is missing, send it later
  };

  Kind kind = Kind::data;
  Sender::Departure::Ack ack = Sender::Departure::Ack::not_asked;
  std::uint32_t ring = 0;
  std::uint32_t rank = 0; // of the connection's sender
  std::uint32_t packet = 0;
  std::uint32_t bytes = 0;
  // The link that it crosses; nullptr where switches choose its way.
  const plan::LinkId* hop = nullptr;
  const plan::LinkId* end = nullptr;
};

using FrameId = std::uint32_t;

enum class FrameEventKind : std::uint16_t {
  arrival,   // subject: frame; detail: link
  attended,  // subject: frame; detail: link. A switch begins with it
  worker,    // subject: worker, whose timer ends
  look,      // subject: fold switch, which checks for what has waited too long
  link_free, // subject: a host's link, which has sent what it was given
};

struct FrameEvent {
  FrameEventKind kind{};
  std::uint32_t subject = 0;
  std::uint32_t detail = 0;
};

/// Links that carry whole frames, one after the other, and may lose them. A lost frame also takes
/// its time on the link.
class FrameNetwork {
 public:
  /// The host's latency is added to the link's for frames that enter a node. `seed` decides which
  /// frames are lost.
  FrameNetwork(const plan::Topology& topology, const WeirSettings& settings, std::uint64_t seed)
      : losses_(settings.losses), random_(seed), transmitters_(topology.links().size()),
        use_(topology.links().size()) {
    for (const plan::Link& link : topology.links()) {
      thresholds_.push_back(may_lose(topology, link, settings.losses)
                                ? static_cast<std::uint64_t>(std::ldexp(settings.loss, 63))
                                : 0);
      paces_.emplace_back(link.traits.bits_per_second);
      links_.push_back({link.traits.bits_per_second,
                        link.traits.latency_ns * kNanosecond +
                            (topology.is_node(link.to) ? settings.host.latency : 0)});
    }
  }

  EventQueue<FrameEvent>& events() { return events_; }

  const EventQueue<FrameEvent>& events() const { return events_; }

  void send(const Frame& frame, plan::LinkId link, Time now) {
    const Time duration = paces_[link].time_of(frame.bytes);
    const Time begin = transmitters_[link].take(now, duration);
    use_[link].packets += 1;
    use_[link].bytes += frame.bytes;
    use_[link].busy += duration;
    if (thresholds_[link] != 0 && can_be_lost(frame) && random_() >> 1 < thresholds_[link]) {
      ++lost_;
      return;
    }
    events_.push(begin + duration + links_[link].latency,
                 {FrameEventKind::arrival, store(frame), link});
  }

  /// When the link has sent all that it was given.
  Time free_from(plan::LinkId link) const { return transmitters_[link].free_from(); }

  const Frame& operator[](FrameId id) const { return frames_[id]; }

  /// Asks for the frame of the event after the next one.
  void prefetch_soon() const {
    const FrameEvent* event = events_.after_next();
    if (event != nullptr && event->subject < frames_.size()) { // else it is another number
      __builtin_prefetch(&frames_[event->subject]);
    }
  }

  void release(FrameId id) { free_.push_back(id); }

  const std::vector<LinkUse>& use() const { return use_; }

  std::uint64_t lost() const { return lost_; }

 private:
  bool can_be_lost(const Frame& frame) const {
    return losses_ == Losses::of_all_frames || frame.kind == Frame::Kind::data;
  }

  static bool may_lose(const plan::Topology& topology, const plan::Link& link, Losses losses) {
    return losses == Losses::of_all_frames ||
           !(topology.is_node(link.from) || topology.is_node(link.to));
  }

  FrameId store(const Frame& frame) {
    if (free_.empty()) {
      frames_.push_back(frame);
      return static_cast<FrameId>(frames_.size() - 1);
    }
    const FrameId id = free_.back();
    free_.pop_back();
    frames_[id] = frame;
    return id;
  }

  std::vector<Link> links_;
  std::vector<Pace> paces_;
  Losses losses_;
  std::mt19937_64 random_;                // the standard fixes its numbers
  std::vector<std::uint64_t> thresholds_; // by link
  std::uint64_t lost_ = 0;
  std::vector<Transmitter> transmitters_;
  std::vector<LinkUse> use_;
  EventQueue<FrameEvent> events_;
  std::vector<Frame> frames_;
  std::vector<FrameId> free_;
};

} // namespace weir::netsim
