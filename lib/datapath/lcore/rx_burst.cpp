// SPDX-License-Identifier: BSD-3-Clause
#include "lcore/rx_burst.hpp"

#include "lcore/mbuf_frame.hpp"
#include "lcore/prefetch.hpp"

#include <rte_ether.h>
#include <rte_mbuf.h>

#include <algorithm>

namespace weir::lcore {
namespace {

/// Some drivers pass a VLAN tag beside the frame. This puts it back: frames must leave as they
/// came.
bool put_vlan_tag_back(rte_mbuf*& mbuf) {
  return (mbuf->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) == 0 || rte_vlan_insert(&mbuf) == 0;
}

/// Of an mbuf in one piece.
std::span<const std::uint8_t> bytes_of(const rte_mbuf* mbuf) {
  return {rte_pktmbuf_mtod(mbuf, const std::uint8_t*), mbuf->pkt_len};
}

std::span<const std::uint8_t> first_piece_of(const rte_mbuf* mbuf) {
  return {rte_pktmbuf_mtod(mbuf, const std::uint8_t*), mbuf->data_len};
}

/// What the worker reads of a parsed frame beyond its headers. Nothing of strangers' frames.
std::span<const std::uint8_t> payload_to_read(const frame::Frame& frame) {
  return frame.pair == 0 ? std::span<const std::uint8_t>() : frame.bytes();
}

/// In one piece, with all its tags.
bool is_as_it_came(const rte_mbuf* mbuf) {
  return mbuf->nb_segs == 1 && (mbuf->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) == 0;
}

/// The kernel takes the outer tag off for af_packet, and the driver puts it back as 802.1Q,
/// whatever it was. On a port with 802.1ad links it was a service tag, even when it is the only
/// tag: an S-VLAN component, such as a provider's network port, knows S-tags only (IEEE 802.1Q
/// §5.6, §9.5).
void make_outer_tag_a_service_tag(rte_mbuf* mbuf) {
  if (mbuf->data_len < sizeof(wire::EthernetHeader) + sizeof(wire::VlanTag)) {
    return;
  }
  auto& ethernet = wire::view_as<wire::EthernetHeader>(rte_pktmbuf_mtod(mbuf, std::uint8_t*));
  if (ethernet.type.get() == static_cast<std::uint16_t>(wire::EtherType::vlan)) {
    ethernet.type.set(static_cast<std::uint16_t>(wire::EtherType::service_vlan));
  }
}

} // namespace

RxBurst::RxBurst(const Parts& parts)
    : shared_(parts.shared), worker_(parts.worker), forward_(parts.forward),
      transmitter_(parts.transmitter), counters_(parts.counters), ports_(parts.ports),
      rounds_(parts.rounds), receive_(shared_.rings, shared_.bridge, counters_),
      dispatch_(shared_.rings, shared_.magic_rule, forward_, parts.workers, shared_.probes,
                shared_.regions),
      l2_fast_path_(shared_.rings, shared_.bridge, dispatch_, forward_) {}

[[gnu::noinline]] void RxBurst::work_on(Burst& burst, frame::Instant now) {
  rounds_.rx_burst.add(burst.received);
  send_or_keep(burst, now);
  expect_more_after(burst.received, worker_);
  if (burst.kept_size != 0 && burst.kept.front().entry != nullptr) {
    last_cached_bytes_ = burst.kept.front().size;
  }
  const bool is_alone = burst.received == 1;
  transmitter_.set_results(is_alone ? Transmitter::Results::next_at_once
                                    : Transmitter::Results::together);
  serve(burst, now);
  transmitter_.set_results(Transmitter::Results::together);
}

/// Sends the frames of the L2 fast path, and keeps the others.
void RxBurst::send_or_keep(Burst& burst, frame::Instant now) {
  const bool may_be_cached = start(burst, now);
  bool parses = false;
  Run run;
  run.ingress = burst.port;
  for (std::size_t place = 0; place < burst.received;) {
    rte_mbuf* mbuf = mbuf_at(place, burst);
    const bool follows_run = run.size != 0; // frames of one kind often follow one another
    stage::FlowCacheEntry* entry =
        may_be_cached && !follows_run ? entry_of(mbuf, burst.port) : nullptr;
    if (entry == nullptr && add_to(run, mbuf, now)) {
      ++place;
      continue;
    }
    if (may_be_cached && follows_run) {
      entry = entry_of(mbuf, burst.port);
    }
    if (entry != nullptr) {
      place = keep_all_of(*entry, place, burst);
      run.may_follow_results = true;
    } else {
      ++place;
      if (keep_parsed(mbuf, burst, now)) {
        parses = run.may_follow_results = true;
      }
    }
  }
  transmit(run);
  parses_frames_ = parses;
}

/// Returns whether its frames may have flow cache entries.
bool RxBurst::start(Burst& burst, frame::Instant now) {
  for (rte_mbuf* mbuf : burst.all().first(std::min(kMbufsAhead, burst.received))) {
    frame::prefetch(mbuf);
  }
  l2_fast_path_.begin_burst();
  const bool may_be_cached = worker_ && start_worker(burst, now);
  for (rte_mbuf* mbuf : burst.all().first(std::min(kFramesAhead, burst.received))) {
    load_header(mbuf);
  }
  return may_be_cached;
}

/// The worker's part of start().
bool RxBurst::start_worker(Burst& burst, frame::Instant now) {
  const bool has_few = burst.received <= kSmallBurst;
  burst.loads_slots = has_few || worker_->cached_path().is_far();
  if (has_few) {
    for (rte_mbuf* mbuf : burst.all()) {
      prefetch_frame(mbuf);
      prefetch_probable_bytes(mbuf, last_cached_bytes_);
    }
  }
  worker_->begin_burst(now);
  // A tag that is rewritten after a frame has found its entry would leave with the frame.
  const bool may_be_cached = shared_.outer_tag_of(burst.port) != wire::EtherType::service_vlan;
  if (may_be_cached && worker_->cached_path().is_far()) {
    load_connections(burst);
  }
  return may_be_cached;
}

/// The mbuf at this place. Loads what is read first of a later one.
[[gnu::always_inline]] inline rte_mbuf* RxBurst::mbuf_at(std::size_t place,
                                                         const Burst& burst) const {
  takes_over(burst.mbufs[place]);
  load_ahead_of(place, burst);
  return burst.mbufs[place];
}

[[gnu::always_inline]] inline void RxBurst::load_ahead_of(std::size_t place,
                                                          const Burst& burst) const {
  frame::prefetch(burst.mbufs[place + kMbufsAhead]);
  load_header(burst.mbufs[place + kFramesAhead]);
}

/// Loads what serving one frame more uses, if one of those kept before `end` was not asked for.
[[gnu::always_inline]] inline void RxBurst::load_next(std::size_t end, Burst& burst) const {
  burst.payloads.far.step(end, [&](std::size_t later) { load(burst.kept[later], burst); });
}

/// The same when all are kept. Besides, loads what one of them uses soon.
[[gnu::always_inline]] inline void RxBurst::load_next_to_serve(Burst& burst) const {
  load_next(burst.kept_size, burst);
  burst.payloads.near.step(burst.kept_size, [&](std::size_t soon) {
    prefetch_start_of_payload(burst.kept[soon].payload());
  });
}

/// Keeps the frame at this place, whose entry this is, and those behind it that have the same one.
/// Returns the place of the next one. Not inline: it needs all registers for itself.
[[gnu::noinline]] std::size_t RxBurst::keep_all_of(stage::FlowCacheEntry& entry, std::size_t place,
                                                   Burst& burst) const {
  rte_mbuf* mbuf = burst.mbufs[place];
  burst.payloads.expect(mbuf->pkt_len); // of all of them
  const std::size_t most = burst.payloads.far_frames();
  for (;;) {
    burst.keep(mbuf, &entry, bytes_of(mbuf));
    load_next(std::min(most, burst.kept_size), burst);
    if (++place == burst.received) {
      return place;
    }
    mbuf = burst.mbufs[place];
    takes_over(mbuf);
    if (!is_as_it_came(mbuf) || !entry.headers.matches(bytes_of(mbuf))) {
      return place;
    }
    load_ahead_of(place, burst);
  }
}

/// Keeps a frame that takes the stages. False when it was dropped.
bool RxBurst::keep_parsed(rte_mbuf* mbuf, Burst& burst, frame::Instant now) {
  const frame::Frame* frame = parse(mbuf, burst.port, now);
  if (frame == nullptr) {
    return false;
  }
  const std::span<const std::uint8_t> payload = payload_to_read(*frame);
  burst.keep(mbuf, nullptr, payload);
  burst.payloads.expect(payload.size());
  load_next(std::min(burst.payloads.far_frames(), burst.kept_size), burst);
  return true;
}

/// Loads what the search for the frame's entry and egress port reads, and the place that parse()
/// writes.
void RxBurst::load_header(rte_mbuf* mbuf) const {
  prefetch_header_of(mbuf);
  if (parses_frames_) { // as in the burst before
    prefetch_frame(mbuf);
  }
}

/// Loads what serving the frame reads and writes.
void RxBurst::load(const Kept& frame, const Burst& burst) const {
  if (frame.entry != nullptr) {
    prefetch_frame(frame.mbuf);
    if (burst.loads_slots) {
      stage::CachedPath::load_slot(*frame.entry, frame.payload());
    }
  }
  prefetch_payload<frame::Cache::second>(frame.payload());
}

void RxBurst::load_connections(const Burst& burst) {
  prefetch_headers(burst.all());
  std::array<std::span<const std::uint8_t>, kBurst> frames;
  std::ranges::transform(burst.all(), frames.begin(), first_piece_of);
  worker_->cached_path().load(std::span(frames).first(burst.received), burst.port);
}

/// The frames of a burst that follow one another and have one entry, as CachedPath::take() asks for
/// them.
struct RxBurst::FramesOfEntry {
  const RxBurst& rx;
  Burst& burst;
  std::size_t place; // of the next one
  const stage::FlowCacheEntry* entry;

  frame::Frame* next() {
    if (place == burst.kept_size || burst.kept[place].entry != entry) {
      return nullptr;
    }
    rx.load_next_to_serve(burst);
    return &make_frame(burst.kept[place++].mbuf, burst.port, entry->headers.packet());
  }
};

/// Serves the kept frames in the order of arrival. Payloads are loaded while the frames before them
/// are worked on. Not inline: it needs all registers for itself.
[[gnu::noinline]] void RxBurst::serve(Burst& burst, frame::Instant now) {
  frame::PortCounters& port = ports_[burst.port];
  const std::span kept = std::span(burst.kept).first(burst.kept_size);
  burst.payloads.near.reach(
      std::min(PayloadsAhead::kNearFrames, kept.size()),
      [&](std::size_t soon) { prefetch_start_of_payload(kept[soon].payload()); });
  for (std::size_t place = 0; place < kept.size();) {
    const Kept& first = kept[place];
    if (first.entry == nullptr) {
      load_next_to_serve(burst);
      dispatch_.accept(frame_of(first.mbuf), now);
      ++place;
      continue;
    }
    const unsigned taken = worker_->cached_path().take(
        *first.entry, now, FramesOfEntry{*this, burst, place, first.entry});
    port.rx_packets += taken;
    port.rx_bytes += taken * first.size; // an entry's frames are of one length
    place += taken;
    if (place < kept.size() && kept[place].entry == first.entry) {
      dispatch_.accept(*parse(kept[place++].mbuf, burst.port, now), now);
    }
  }
}

/// nullptr when the frame must take another way.
stage::FlowCacheEntry* RxBurst::entry_of(const rte_mbuf* mbuf, std::uint16_t port) {
  return is_as_it_came(mbuf) ? worker_->cached_path().entry_of(bytes_of(mbuf), port) : nullptr;
}

/// False when the frame must take the stages.
bool RxBurst::add_to(Run& run, rte_mbuf* mbuf, frame::Instant now) {
  if (!is_as_it_came(mbuf)) [[unlikely]] {
    return false;
  }
  const std::span<const std::uint8_t> bytes = bytes_of(mbuf);
  const std::uint16_t egress = l2_fast_path_.egress_of(bytes, run.ingress, now.ms());
  if (egress == frame::kNoPort) {
    return false;
  }
  if (egress != run.egress) {
    transmit(run);
    run.egress = egress;
  }
  run.mbufs[run.size++] = mbuf;
  run.bytes += bytes.size();
  return true;
}

void RxBurst::transmit(Run& run) {
  if (run.size == 0) {
    return;
  }
  std::span<rte_mbuf* const> mbufs(run.mbufs.data(), run.size);
  counters_.received += run.size;
  ports_[run.ingress].rx_packets += run.size;
  ports_[run.ingress].rx_bytes += run.bytes;
  if (run.size >= kMinBurstToDevice && !run.may_follow_results) {
    mbufs = mbufs.subspan(transmitter_.tx_burst(mbufs, run.bytes, run.egress));
  }
  if (!mbufs.empty()) {
    mbufs = mbufs.subspan(transmitter_.enqueue(mbufs, run.egress));
  }
  run.size = 0;
  run.bytes = 0;
  for (rte_mbuf* mbuf : mbufs) {   // the port is another lcore's, or its backlog is full
    make_frame(mbuf, run.ingress); // for a trace, when it is dropped on its way
    transmitter_.transmit(
        {mbuf, run.egress, frame::Departure::forwarded, frame::TrafficClass::other, mbuf->pkt_len});
  }
}

/// nullptr when the frame was dropped.
frame::Frame* RxBurst::parse(rte_mbuf* mbuf, std::uint16_t port, frame::Instant now) {
  const bool is_whole = put_vlan_tag_back(mbuf) && rte_pktmbuf_linearize(mbuf) == 0;
  if (shared_.outer_tag_of(port) == wire::EtherType::service_vlan) [[unlikely]] {
    make_outer_tag_a_service_tag(mbuf);
  }
  frame::Frame& frame = make_frame(mbuf, port);
  ++ports_[port].rx_packets;
  ports_[port].rx_bytes += frame.length;
  if (!is_whole) {
    ++counters_.received;
    frame.length = mbuf->data_len; // no more lies at its data
    forward_.drop<stage::StageId::receive>(frame, DropReason::not_contiguous, now);
    return nullptr;
  }
  receive_.accept(frame, now);
  if (frame.pair == 0) {
    l2_fast_path_.close();
  }
  return &frame;
}

} // namespace weir::lcore
