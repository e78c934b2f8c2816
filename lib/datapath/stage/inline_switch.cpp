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
      dispatch_(current_, conn::magic_rule_settings(worker_settings_.classifier), forward_, *this,
                probes_) {
  bridge_.lead_to_switches(current_->ports_of_switches());
}

void InlineSwitch::swap_rings(ring::RingSet rings) {
  current_.swap(std::make_shared<const ring::RingSet>(std::move(rings)));
  bridge_.lead_to_switches(current_->ports_of_switches());
}

void InlineSwitch::accept(std::span<frame::Frame* const> burst, frame::Instant now) {
  CachedPath& cached_path = worker_.cached_path();
  cached_path.begin_burst();
  std::array<FlowCacheEntry*, kBurst> entries;
  FlowCacheEntry* entry = nullptr;
  std::ranges::transform(burst, entries.begin(), [&](const frame::Frame* frame) {
    const std::span<const std::uint8_t> bytes = frame->bytes();
    if (cached_path.is_far()) {
      cached_path.load({&bytes, 1}, frame->ingress);
    }
    const bool follows =
        entry != nullptr && entry->port == frame->ingress && entry->headers.matches(bytes);
    entry = follows ? entry : cached_path.entry_of(bytes, frame->ingress);
    return entry;
  });
  for (std::size_t place = 0; place < burst.size() && cached_path.is_far(); ++place) {
    if (entries[place] != nullptr) {
      CachedPath::load_slot(*entries[place], burst[place]->bytes());
    }
  }
  serve(burst, std::span(entries).first(burst.size()), now);
}

namespace {

/// The frames of a burst that follow one another and have one entry, as CachedPath::take() asks for
/// them.
struct FramesOfEntry {
  const FlowCacheEntry* entry;
  std::span<frame::Frame* const> frames;
  std::span<FlowCacheEntry* const> entries; // of the frames

  frame::Frame* next() {
    if (frames.empty() || entries.front() != entry) {
      return nullptr;
    }
    frame::Frame* frame = frames.front();
    frame->packet = entry->headers.packet();
    frames = frames.subspan(1);
    entries = entries.subspan(1);
    return frame;
  }
};

} // namespace

void InlineSwitch::serve(std::span<frame::Frame* const> burst,
                         std::span<FlowCacheEntry* const> entries, frame::Instant now) {
  for (std::size_t place = 0; place < burst.size();) {
    FlowCacheEntry* entry = entries[place];
    if (entry != nullptr) {
      place += worker_.cached_path().take(
          *entry, now, FramesOfEntry{entry, burst.subspan(place), entries.subspan(place)});
    }
    if (place < burst.size() && entries[place] == entry) {
      take_stages(*burst[place++], now);
    }
  }
}

void InlineSwitch::take_stages(frame::Frame& frame, frame::Instant now) {
  receive_.accept(frame, now);
  dispatch_.accept(frame, now);
}

void InlineSwitch::withdraw_ring(std::uint16_t ring, frame::Instant now) {
  WorkerRing room = worker_.withdraw_ring(ring, now);
  swap_rings(current_->without(ring));
  while (worker_.drop_some(room, 1, now)) {
  }
}

void InlineSwitch::change_rings(std::span<const ring::RingSpec> specs, frame::Instant now) {
  swap_rings(current_->with_changed(specs));
  for (const ring::RingSpec& spec : specs) {
    worker_.change_ring(*current_->ring_with_id(spec.id), now);
  }
}

std::uint16_t InlineSwitch::add_ring(const ring::RingSpec& spec) {
  const ring::Ring ring(spec);
  ring::RingSet next = current_->with(spec);
  if (ring.senders() > worker_.incarnations().spare_children()) {
    throw std::length_error("no room for the connections of one ring more");
  }
  const std::uint16_t index = current_->next_index();
  WorkerRing room(ring, worker_settings_.memory);
  swap_rings(std::move(next));
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

void InlineSwitch::to_worker(frame::Frame& frame, std::uint16_t ring_group, frame::Instant now) {
  worker_.accept(frame, ring_group, now);
}

} // namespace weir::stage
