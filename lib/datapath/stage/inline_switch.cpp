// SPDX-License-Identifier: BSD-3-Clause
#include "stage/inline_switch.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>

namespace weir::stage {
namespace {

constexpr std::uint16_t kNobody = UINT16_MAX;

/// The pairs of a ring's neighbours, in both directions.
std::vector<std::uint16_t> pairs_of(const ring::RingSet& set, std::uint16_t ring) {
  std::vector<std::uint16_t> pairs;
  for (std::uint16_t sender = 0; sender < set.rings()[ring].senders(); ++sender) {
    const std::uint16_t pair = set.pair_of(ring::RingChild{ring, sender});
    pairs.insert(pairs.end(), {pair, set.reverse_of(pair)});
  }
  return pairs;
}

/// By ring: in turn, but a ring with a switch above has its neighbours' first worker
/// (control::place).
std::vector<std::uint16_t> deal(const ring::RingSet& set, std::uint16_t workers) {
  std::vector<std::uint16_t> dealt;
  std::vector<std::uint16_t> first(set.pairs(), kNobody);
  for (std::uint16_t ring = 0; ring < set.rings().size(); ++ring) {
    const std::vector<std::uint16_t> pairs = pairs_of(set, ring);
    const std::uint16_t known = first[pairs.front() - 1U];
    const bool is_with_first = !set.rings()[ring].is_root() && known != kNobody;
    dealt.push_back(is_with_first ? known : static_cast<std::uint16_t>(ring % workers));
    for (const std::uint16_t pair : pairs) {
      first[pair - 1U] = first[pair - 1U] == kNobody ? dealt.back() : first[pair - 1U];
    }
  }
  return dealt;
}

std::vector<std::uint16_t> rings_of(const ring::RingSet& set, std::uint16_t worker,
                                    std::uint16_t workers) {
  const std::vector<std::uint16_t> dealt = deal(set, workers);
  std::vector<std::uint16_t> rings;
  for (std::uint16_t ring = 0; ring < dealt.size(); ++ring) {
    if (dealt[ring] == worker) {
      rings.push_back(ring);
    }
  }
  return rings;
}

std::uint32_t most_claims(const ring::RingSet& set, const conn::Classifier::Settings& settings) {
  return conn::QueuePairClaims::most_of(set) +
         conn::QueuePairClaims::kPerChild * settings.spare_children;
}

std::unique_ptr<conn::ConnectionOwners> owners_for(const ring::RingSet& set,
                                                   const InlineSwitch::Settings& settings) {
  const std::uint32_t connections =
      most_claims(set, settings.worker.classifier) / conn::QueuePairClaims::kPerChild;
  return settings.workers == 1
             ? nullptr
             : std::make_unique<conn::ConnectionOwners>(connections, settings.workers,
                                                        settings.worker.classifier.hash_key);
}

std::unique_ptr<conn::PortBindings> bindings_for(const ring::CurrentRings& current,
                                                 const InlineSwitch::Settings& settings) {
  return settings.workers == 1 ? nullptr : std::make_unique<conn::PortBindings>(current);
}

} // namespace

InlineSwitch::InlineSwitch(const std::vector<ring::RingSpec>& rings,
                           std::vector<std::uint32_t> max_frame_bytes, const Settings& settings,
                           FrameSink& sink)
    : current_(ring::RingSet(rings, settings.worker.classifier.hash_key)),
      foreign_sessions_(settings.worker.classifier.hash_key, ways_out_by(bridge_)),
      claims_(most_claims(*current_, settings.worker.classifier),
              settings.worker.classifier.hash_key),
      owners_(owners_for(*current_, settings)), ports_of_members_(bindings_for(current_, settings)),
      worker_settings_(common_settings(max_frame_bytes.size(), settings)),
      stations_(settings.mac_entries, settings.mac_aging_ms, settings.worker.classifier.hash_key),
      bridge_(stations_, static_cast<std::uint16_t>(max_frame_bytes.size())),
      forward_(bridge_, std::move(max_frame_bytes), sink, counters_, trace_),
      worker_(current_, rings_of(*current_, 0, settings.workers), worker_settings_, bridge_,
              forward_, counters_),
      regions_(settings.regions), handover_(settings.handover),
      receive_(current_, bridge_, counters_),
      dispatch_(current_, conn::magic_rule_settings(worker_settings_.classifier), forward_,
                settings.workers == 1 ? static_cast<WorkerSink&>(*this) : to_team_, probes_,
                regions_) {
  bridge_.lead_to_switches(current_->ports_of_switches());
  make_others(settings);
}

Worker::Settings InlineSwitch::common_settings(std::size_t ports, const Settings& settings) {
  Worker::Settings common = settings.worker;
  common.classifier.ports = static_cast<std::uint16_t>(ports);
  common.classifier.foreign_sessions = &foreign_sessions_;
  common.classifier.claims = &claims_;
  common.classifier.owners = owners_.get();
  common.classifier.ports_of_members = ports_of_members_.get();
  common.peers = settings.workers == 1 ? nullptr : this;
  return common;
}

/// The first worker is there already, with its rings.
void InlineSwitch::make_others(const Settings& settings) {
  for (std::uint16_t number = 1; number < settings.workers; ++number) {
    Worker::Settings own = worker_settings_;
    own.classifier.worker = number;
    own.classifier.sessions = own.classifier.sessions.beside(number);
    others_.push_back(std::make_unique<Worker>(current_,
                                               rings_of(*current_, number, settings.workers), own,
                                               bridge_, forward_, counters_));
  }
  inboxes_.resize(others_.empty() ? 0 : std::size_t{workers()} * workers());
  const std::vector<std::uint16_t> dealt = deal(*current_, workers());
  for (std::uint16_t ring = 0; ring < dealt.size(); ++ring) {
    assign(ring, dealt[ring]);
  }
}

void InlineSwitch::assign(std::uint16_t ring, std::uint16_t worker) {
  worker_of_ring_.resize(current_->rings().size());
  worker_of_ring_[ring] = worker;
  worker_of_pair_.resize(current_->pairs(), kNobody);
  for (const std::uint16_t pair : pairs_of(*current_, ring)) {
    std::uint16_t& first = worker_of_pair_[pair - 1U];
    first = first == kNobody ? worker : first;
  }
}

void InlineSwitch::receive(frame::Frame& frame, frame::Instant now) {
  if (others_.empty()) {
    return accept(frame, now);
  }
  receiving_ = static_cast<std::uint16_t>(frame.ingress % workers());
  accept_on(numbered(receiving_), frame, now);
  if (handover_ == Handover::at_once) {
    take_all_over(now);
  }
}

std::uint16_t InlineSwitch::worker_for(const frame::Frame& frame) const {
  return owners_->owner_of(frame).value_or(worker_of_pair_[frame.pair - 1u]);
}

void InlineSwitch::hand_over(frame::Frame& frame, std::uint16_t to) {
  inboxes_[std::size_t{to} * workers() + receiving_].push_back(&frame);
}

bool InlineSwitch::take_over(std::size_t inbox, frame::Instant now) {
  std::deque<frame::Frame*>& frames = inboxes_[inbox];
  if (frames.empty()) {
    return false;
  }
  frame::Frame& frame = *frames.front();
  frames.pop_front();
  receiving_ = static_cast<std::uint16_t>(inbox / workers());
  numbered(receiving_).accept(frame, current_->ring_group_of_pair(frame.pair), now);
  return true;
}

void InlineSwitch::take_all_over(frame::Instant now) {
  for (bool is_some = true; is_some;) {
    is_some = false;
    for (std::size_t inbox = 0; inbox < inboxes_.size(); ++inbox) {
      is_some = take_over(inbox, now) || is_some;
    }
  }
}

std::uint64_t InlineSwitch::next_timer() const {
  std::uint64_t next = worker_.next_timer();
  for (const auto& worker : others_) {
    next = std::min(next, worker->next_timer());
  }
  return next;
}

std::uint64_t InlineSwitch::held() const {
  std::uint64_t frames = worker_.held();
  for (const auto& worker : others_) {
    frames += worker->held();
  }
  return frames;
}

std::uint64_t InlineSwitch::queued() const {
  std::uint64_t frames = worker_.queue().lines().size();
  for (const auto& worker : others_) {
    frames += worker->queue().lines().size();
  }
  for (const std::deque<frame::Frame*>& inbox : inboxes_) {
    frames += inbox.size();
  }
  return frames;
}

void InlineSwitch::swap_rings(ring::RingSet rings) {
  current_.swap(std::make_shared<const ring::RingSet>(std::move(rings)));
  bridge_.lead_to_switches(current_->ports_of_switches());
}

void InlineSwitch::accept(std::span<frame::Frame* const> burst, frame::Instant now) {
  assert(others_.empty());
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

namespace {

/// One frame, as CachedPath::take() asks for it.
struct OnlyFrame {
  frame::Frame* frame;

  frame::Frame* next() { return std::exchange(frame, nullptr); }
};

} // namespace

void InlineSwitch::accept_on(Worker& worker, frame::Frame& frame, frame::Instant now) {
  worker.begin_burst(now);
  FlowCacheEntry* const entry = worker.cached_path().entry_of(frame.bytes(), frame.ingress);
  if (entry != nullptr) {
    frame.packet = entry->headers.packet();
  }
  if (entry == nullptr || worker.cached_path().take(*entry, now, OnlyFrame{&frame}) == 0) {
    take_stages(frame, now);
  }
}

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
  Worker& worker = worker_at(ring);
  WorkerRing room = worker.withdraw_ring(ring, now);
  swap_rings(current_->without(ring));
  while (worker.drop_some(room, 1, now)) {
  }
}

void InlineSwitch::change_rings(std::span<const ring::RingSpec> specs, frame::Instant now) {
  swap_rings(current_->with_changed(specs));
  for (const ring::RingSpec& spec : specs) {
    const std::uint16_t ring = *current_->ring_with_id(spec.id);
    worker_at(ring).change_ring(ring, now);
  }
}

std::uint16_t InlineSwitch::add_ring(const ring::RingSpec& spec) {
  const ring::Ring ring(spec);
  ring::RingSet next = current_->with(spec);
  const std::uint16_t pair = next.pair_of(ring::RingChild{current_->next_index(), 0});
  const bool is_known = pair <= worker_of_pair_.size() && worker_of_pair_[pair - 1U] != kNobody;
  const auto number = !ring.is_root() && is_known
                          ? worker_of_pair_[pair - 1U]
                          : static_cast<std::uint16_t>(++rings_added_ % workers());
  Worker& worker = numbered(number);
  if (ring.senders() > worker.incarnations().spare_children()) {
    throw std::length_error("no room for the connections of one ring more");
  }
  const std::uint16_t index = current_->next_index();
  WorkerRing room(ring, worker_settings_.memory);
  swap_rings(std::move(next));
  for_each_worker([](Worker& any) { any.follow_set(); });
  worker.adopt(index, std::move(room));
  assign(index, number);
  return index;
}

region::Region& InlineSwitch::add_region(const region::RegionSpec& spec,
                                         const region::RegionBirth& birth, std::uint16_t tenant,
                                         frame::Instant now) {
  auto made = regions().make(spec, birth);
  region::Region& region = *made;
  worker_.adopt_region(std::move(made), tenant, now);
  return region;
}

unsigned InlineSwitch::serve(unsigned frames, frame::Instant now) {
  unsigned served = 0;
  frame::Frame* frame = nullptr;
  while (served < frames && worker_.queue().take({&frame, 1}, now) != 0) {
    worker_.queue().go_on(*frame, now);
    ++served;
  }
  return served;
}

void InlineSwitch::to_worker(frame::Frame& frame, std::uint16_t ring_group, frame::Instant now) {
  worker_.accept(frame, ring_group, now);
}

void InlineSwitch::to_region(frame::Frame& frame, frame::Instant now) {
  worker_.accept_for_region(frame, now);
}

void InlineSwitch::to_one_of_several(frame::Frame& frame, std::uint16_t ring_group,
                                     frame::Instant now) {
  const std::uint16_t to = worker_for(frame);
  if (to == receiving_) {
    return numbered(to).accept(frame, ring_group, now);
  }
  hand_over(frame, to);
}

/// A hello that one worker leaves to another.
void InlineSwitch::to_worker_of(std::uint16_t ring, frame::Frame& frame, frame::Instant /*now*/) {
  hand_over(frame, worker_of_ring_[ring]);
}

} // namespace weir::stage
