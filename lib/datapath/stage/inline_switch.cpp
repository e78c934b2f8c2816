// SPDX-License-Identifier: BSD-3-Clause
#include "stage/inline_switch.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace weir::stage {
namespace {

std::vector<std::uint16_t> all_of(const ring::RingSet& set) {
  std::vector<std::uint16_t> rings(set.rings().size());
  std::iota(rings.begin(), rings.end(), std::uint16_t{0});
  return rings;
}

Worker::Settings with(conn::ForeignSessions& sessions, conn::QueuePairClaims& claims,
                      std::size_t ports, Worker::Settings settings) {
  settings.classifier.ports = static_cast<std::uint16_t>(ports);
  settings.classifier.foreign_sessions = &sessions;
  settings.classifier.claims = &claims;
  return settings;
}

} // namespace

InlineSwitch::InlineSwitch(const std::vector<ring::RingSpec>& rings,
                           std::vector<std::uint32_t> max_frame_bytes, const Settings& settings,
                           FrameSink& sink)
    : current_(ring::RingSet(rings, settings.worker.classifier.hash_key)),
      foreign_sessions_(settings.worker.classifier.hash_key, ways_out_by(bridge_)),
      claims_(conn::QueuePairClaims::most_of(*current_) +
                  conn::QueuePairClaims::kPerChild * settings.worker.classifier.spare_children,
              settings.worker.classifier.hash_key),
      worker_settings_(with(foreign_sessions_, claims_, max_frame_bytes.size(), settings.worker)),
      stations_(settings.mac_entries, settings.mac_aging_ms, settings.worker.classifier.hash_key),
      bridge_(stations_, static_cast<std::uint16_t>(max_frame_bytes.size())),
      forward_(bridge_, std::move(max_frame_bytes), sink, counters_, trace_),
      worker_(current_, all_of(*current_), worker_settings_, bridge_, forward_, counters_),
      receive_(current_, bridge_, counters_),
      dispatch_(current_, conn::magic_rule_settings(worker_settings_.classifier), forward_, *this) {
}

void InlineSwitch::accept(std::span<frame::Frame* const> burst, frame::Instant now) {
  RingPath& ring_path = worker_.ring_path();
  ring_path.begin_burst();
  std::array<Lane*, kBurst> lanes;
  Lane* lane = nullptr;
  std::ranges::transform(burst, lanes.begin(), [&](const frame::Frame* frame) {
    const std::span<const std::uint8_t> bytes = frame->bytes();
    if (ring_path.is_far()) {
      ring_path.load({&bytes, 1}, frame->ingress);
    }
    const bool follows =
        lane != nullptr && lane->port == frame->ingress && lane->headers.matches(bytes);
    lane = follows ? lane : ring_path.lane_of(bytes, frame->ingress);
    return lane;
  });
  for (std::size_t place = 0; place < burst.size() && ring_path.is_far(); ++place) {
    if (lanes[place] != nullptr) {
      RingPath::load_slot(*lanes[place], burst[place]->bytes());
    }
  }
  serve(burst, std::span(lanes).first(burst.size()), now);
}

namespace {

/// The frames of a burst that go in one lane, as RingPath::take() asks for them.
struct FramesOfLane {
  const Lane* lane;
  std::span<frame::Frame* const> frames;
  std::span<Lane* const> lanes; // of the frames

  frame::Frame* next() {
    if (frames.empty() || lanes.front() != lane) {
      return nullptr;
    }
    frame::Frame* frame = frames.front();
    frame->packet = lane->headers.packet();
    frames = frames.subspan(1);
    lanes = lanes.subspan(1);
    return frame;
  }
};

} // namespace

void InlineSwitch::serve(std::span<frame::Frame* const> burst, std::span<Lane* const> lanes,
                         frame::Instant now) {
  for (std::size_t place = 0; place < burst.size();) {
    Lane* lane = lanes[place];
    if (lane != nullptr) {
      place += worker_.ring_path().take(
          *lane, now, FramesOfLane{lane, burst.subspan(place), lanes.subspan(place)});
    }
    if (place < burst.size() && lanes[place] == lane) {
      take_stages(*burst[place++], now);
    }
  }
}

void InlineSwitch::take_stages(frame::Frame& frame, frame::Instant now) {
  receive_.accept(frame, now);
  dispatch_.accept(frame, now);
}

void InlineSwitch::withdraw_ring(std::uint16_t ring, frame::Instant now) {
  RingRoom room = worker_.withdraw_ring(ring, now);
  current_.swap(std::make_shared<const ring::RingSet>(current_->without(ring)));
  while (worker_.drop_some(room, 1, now)) {
  }
}

void InlineSwitch::change_rings(std::span<const ring::RingSpec> specs, frame::Instant now) {
  current_.swap(std::make_shared<const ring::RingSet>(current_->with_changed(specs)));
  for (const ring::RingSpec& spec : specs) {
    worker_.change_ring(*current_->ring_with_id(spec.id), now);
  }
}

std::uint16_t InlineSwitch::add_ring(const ring::RingSpec& spec) {
  const ring::Ring ring(spec);
  auto next = std::make_shared<const ring::RingSet>(current_->with(spec));
  if (ring.children() > worker_.classifier().spare_children()) {
    throw std::length_error("no room for the connections of one ring more");
  }
  const std::uint16_t index = current_->next_index();
  RingRoom room(ring, worker_settings_.memory);
  current_.swap(std::move(next));
  worker_.adopt(index, std::move(room));
  return index;
}

unsigned InlineSwitch::serve(unsigned frames, frame::Instant now) {
  unsigned served = 0;
  frame::Frame* frame = nullptr;
  while (served < frames && worker_.queue().take({&frame, 1}, now) != 0) {
    worker_.queue().pass(*frame, now);
    ++served;
  }
  return served;
}

void InlineSwitch::to_worker(frame::Frame& frame, std::uint16_t group, frame::Instant now) {
  worker_.accept(frame, group, now);
}

} // namespace weir::stage
