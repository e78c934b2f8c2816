// SPDX-License-Identifier: BSD-3-Clause
#include "lcore/lcore.hpp"

#include "frame/frame.hpp"
#include "lcore/context_switches.hpp"
#include "lcore/mbuf_frame.hpp"
#include "lcore/prefetch.hpp"
#include "wire/icrc.hpp"

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_mempool.h>
#include <rte_pause.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <thread>
#include <utility>

namespace weir::lcore {
namespace {

constexpr std::chrono::microseconds kRest{50};

std::string handoff_name(char stage, unsigned from, unsigned to) {
  return std::string("weir_") + stage + std::to_string(from) + "_" + std::to_string(to);
}

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

/// The frame's mbuf, as long as the frame: a result has no trailer any more, and how long the
/// switch's own frames are is known only now.
rte_mbuf* mbuf_to_send(frame::Frame& frame) {
  rte_mbuf* mbuf = mbuf_of(frame);
  mbuf->pkt_len = frame.length;
  mbuf->data_len = static_cast<std::uint16_t>(frame.length);
  return mbuf;
}

/// The result leaves by this port.
TxRequest request_for(frame::Frame& result, std::uint16_t port) {
  return {mbuf_to_send(result), port, frame::Departure::consumed, frame::TrafficClass::ring,
          result.length};
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

Lcore::Lcore(unsigned id, Idle idle, const Shared& shared, int node)
    : id_(id), node_(node), idle_(idle), shared_(shared),
      forward_(shared.bridge, shared.max_frame_bytes, *this, counters_, trace_),
      receive_(shared.rings, shared.bridge, counters_),
      dispatch_(shared.rings, shared.magic_rule, forward_, *this),
      l2_fast_path_(shared.rings, shared.bridge, dispatch_, forward_),
      worker_routes_(shared.rings->rings().size()) {}

void Lcore::remove_rx_queues(std::uint16_t port) {
  std::erase_if(rx_queues_, [port](const RxQueue& queue) { return queue.port == port; });
}

void Lcore::add_tx_port(std::uint16_t port, std::unique_ptr<TxPort> queues) {
  tx_ports_[port] = std::move(queues);
  own_tx_ports_ |= l2::PortSet{1} << port;
}

void Lcore::close_tx_port(std::uint16_t port) {
  if (tx_ports_[port]) {
    set_busy(port);
    tx_ports_[port]->close(counters_, ports_[port]);
  }
}

void Lcore::set_frame_limit(std::uint16_t port, std::optional<std::uint32_t> bytes) {
  forward_.set_frame_limit(port, bytes);
}

void Lcore::make_worker(std::vector<std::uint16_t> rings, stage::Worker::Settings settings) {
  settings.helpers = this;
  worker_.emplace(shared_.rings, std::move(rings), settings, shared_.bridge, forward_, counters_);
}

namespace {

template <typename Value, typename Owner>
using Outboxes = std::vector<std::pair<const Owner*, std::unique_ptr<Outbox<Value>>>>;

/// The values for `receiver`. They go through a ring in its inbox, which this makes on first use,
/// on the receiver's NUMA node.
template <typename Value, typename Owner>
Outbox<Value>* outbox_for(const Owner* receiver, const std::string& name, unsigned entries,
                          int node, std::vector<std::unique_ptr<Handoff<Value>>>& inbox,
                          Outboxes<Value, Owner>& outboxes) {
  for (const auto& [known, outbox] : outboxes) {
    if (known == receiver) {
      return outbox.get();
    }
  }
  inbox.push_back(std::make_unique<Handoff<Value>>(name, entries, node));
  outboxes.emplace_back(receiver, std::make_unique<Outbox<Value>>(*inbox.back()));
  return outboxes.back().second.get();
}

} // namespace

void Lcore::reach(Lcore& worker) {
  if (&worker != this) {
    outbox_to(worker);
  }
}

Outbox<rte_mbuf*>* Lcore::outbox_to(Lcore& worker) {
  return outbox_for(&worker, handoff_name('w', id_, worker.id_), kHandoffEntries, worker.node_,
                    worker.worker_inbox_, worker_outboxes_);
}

void Lcore::route_ring_group(std::uint16_t ring_group, Lcore& worker) {
  worker_routes_.resize(std::max<std::size_t>(worker_routes_.size(), ring_group + 1u));
  worker_routes_[ring_group] = &worker == this ? nullptr : outbox_to(worker);
}

void Lcore::set_aging(std::uint64_t milliseconds) {
  dispatch_.set_aging(milliseconds);
  if (worker_) {
    worker_->set_aging(milliseconds);
  }
}

Outbox<TxRequest>* Lcore::outbox_to(Lcore& transmitter, std::size_t traffic) {
  constexpr std::array stages{'r', 't'}; // by class
  return outbox_for(&transmitter, handoff_name(stages[traffic], id_, transmitter.id_),
                    kTxHandoffEntries[traffic], transmitter.node_, transmitter.tx_inbox_[traffic],
                    tx_outboxes_[traffic]);
}

void Lcore::reach_transmitter(Lcore& transmitter) {
  for (std::size_t traffic = 0; traffic < frame::kTrafficClasses && &transmitter != this;
       ++traffic) {
    outbox_to(transmitter, traffic);
  }
}

void Lcore::route_port(std::uint16_t port, Lcore& transmitter) {
  set_busy(port); // until the next flush
  for (std::size_t traffic = 0; traffic < frame::kTrafficClasses; ++traffic) {
    tx_routes_[traffic][port] = &transmitter == this ? nullptr : outbox_to(transmitter, traffic);
  }
}

void Lcore::add_helper(Lcore& helper) {
  helper.reduction_inbox_.push_back(std::make_unique<ReductionHandoff>(
      handoff_name('s', id_, helper.id_), kHandoffEntries, helper.node_));
  helpers_.push_back(helper.reduction_inbox_.back().get());
}

void Lcore::run() {
  const Clock clock;
  running_.store(true, std::memory_order_release);
  reader_.enter();
  while (!stopping_.load(std::memory_order_relaxed)) {
    const unsigned work = round(clock.now());
    reader_.between_bursts();
    switch (request_.load(std::memory_order_acquire)) {
    case Request::run:
      rest_after(work);
      break;
    case Request::stay_awake:
      wake();
      break;
    case Request::quiesce:
      wait_for_resume(clock);
      break;
    }
  }
  reader_.leave();
  running_.store(false, std::memory_order_release);
}

void Lcore::wait_until_running() const {
  while (!running_.load(std::memory_order_acquire)) {
    std::this_thread::yield();
  }
}

void Lcore::wait_until_stopped() const {
  while (running_.load(std::memory_order_acquire)) {
    std::this_thread::yield();
  }
}

unsigned Lcore::round(frame::Instant now) {
  now_ = now;
  unsigned work = 0;
  if (is_receiving_) [[likely]] {
    work += receive_all(now);
  }
  work += take_worker_handoffs(now);
  if (worker_) {
    work += serve(now);
    work += worker_->collect(now);
    worker_->poll_timers(now);
  }
  work += make_reductions_for_others();
  hand_on(now);
  work += take_tx_handoffs();
  work += flush_ports();
  ++rounds_.rounds;
  rounds_.idle_rounds += work == 0 ? 1 : 0;
  return work;
}

unsigned Lcore::receive_all(frame::Instant now) {
  unsigned frames = 0;
  for (const RxQueue& queue : rx_queues_) {
    frames += take_bursts([&] { return receive(queue, now); });
  }
  const bool is_due = rounds_.rounds % kRoundsPerPoolCheck == 0 && !rx_queues_.empty();
  if (frames == 0 && is_due && shared_.pool != nullptr) {
    check_mempool();
  }
  return frames;
}

/// `take` takes at most a burst from a place where frames arrive, and returns how many there were.
template <typename Take>
unsigned Lcore::take_bursts(Take&& take) {
  unsigned frames = 0;
  for (unsigned burst = 1;; ++burst) {
    const unsigned count = take();
    frames += count;
    const bool is_behind = worker_ && !worker_->queue().lines().is_empty();
    if (count < kBurst || !is_behind || burst == kMostBursts) {
      return frames;
    }
  }
}

/// Lets frames that wait for the worker go on: in a round as many as could come straight through.
unsigned Lcore::serve(frame::Instant now) {
  stage::Queue& queue = worker_->queue();
  const std::size_t most = kBurst * (rx_queues_.size() + worker_inbox_.size());
  unsigned served = 0;
  while (served < most && !queue.lines().is_empty()) {
    std::array<frame::Frame*, kBurst> frames;
    const unsigned count = queue.take(frames, now);
    if (count == 0) {
      break; // all wait for their tenants' rates
    }
    std::array<rte_mbuf*, kBurst> mbufs;
    std::transform(frames.begin(), frames.begin() + count, mbufs.begin(),
                   [](frame::Frame* frame) { return mbuf_of(*frame); });
    for_each_parsed(std::span(mbufs).first(count),
                    [&](frame::Frame& frame) { queue.pass(frame, now); });
    served += count;
  }
  return served;
}

/// Looks whether the mempool is empty. Not every driver counts frames that it lost for lack of an
/// mbuf; an empty pool would then look like idle ports.
void Lcore::check_mempool() {
  std::array<void*, kBurst> mbufs;
  if (rte_mempool_get_bulk(shared_.pool, mbufs.data(), kBurst) == 0) {
    rte_mempool_put_bulk(shared_.pool, mbufs.data(), kBurst);
  } else {
    ++rounds_.starved_rounds;
  }
}

/// Little for a queue that is empty, as most are when there is little to do.
[[gnu::always_inline]] inline unsigned Lcore::receive(const RxQueue& queue, frame::Instant now) {
  burst_.received = rte_eth_rx_burst(queue.device, queue.queue, burst_.mbufs.data(), kBurst);
  if (burst_.received == 0) {
    return 0;
  }
  burst_.begin(queue.port);
  work_on(burst_, now);
  return static_cast<unsigned>(burst_.received);
}

[[gnu::noinline]] void Lcore::work_on(Burst& burst, frame::Instant now) {
  rounds_.rx_burst.add(burst.received);
  send_or_keep(burst, now);
  expect(burst.received);
  if (burst.kept_size != 0 && burst.kept.front().entry != nullptr) {
    last_cached_bytes_ = burst.kept.front().size;
  }
  is_single_frame_ = burst.received == 1;
  serve(burst, now);
  is_single_frame_ = false;
}

/// Sends the frames of the fast path, and keeps the others.
void Lcore::send_or_keep(Burst& burst, frame::Instant now) {
  const bool may_be_cached = start(burst);
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
  send(run);
  parses_frames_ = parses;
}

/// Returns whether its frames may have entries.
bool Lcore::start(Burst& burst) {
  for (rte_mbuf* mbuf : burst.all().first(std::min(kMbufsAhead, burst.received))) {
    frame::prefetch(mbuf);
  }
  l2_fast_path_.begin_burst();
  const bool may_be_cached = worker_ && start_worker(burst);
  for (rte_mbuf* mbuf : burst.all().first(std::min(kFramesAhead, burst.received))) {
    load_header(mbuf);
  }
  return may_be_cached;
}

/// The worker's part of start().
bool Lcore::start_worker(Burst& burst) {
  const bool has_few = burst.received <= kSmallBurst;
  burst.loads_slots = has_few || worker_->cached_path().is_far();
  if (has_few) {
    for (rte_mbuf* mbuf : burst.all()) {
      prefetch_frame(mbuf);
      prefetch_probable_bytes(mbuf, last_cached_bytes_);
    }
  }
  worker_->cached_path().begin_burst();
  // A tag that is rewritten after a frame has found its entry would leave with the frame.
  const bool may_be_cached = outer_tag_of(burst.port) != wire::EtherType::service_vlan;
  if (may_be_cached && worker_->cached_path().is_far()) {
    load_connections(burst);
  }
  return may_be_cached;
}

/// The mbuf at this place. Loads what is read first of a later one.
[[gnu::always_inline]] inline rte_mbuf* Lcore::mbuf_at(std::size_t place,
                                                       const Burst& burst) const {
  takes_over(burst.mbufs[place]);
  load_ahead_of(place, burst);
  return burst.mbufs[place];
}

[[gnu::always_inline]] inline void Lcore::load_ahead_of(std::size_t place,
                                                        const Burst& burst) const {
  frame::prefetch(burst.mbufs[place + kMbufsAhead]);
  load_header(burst.mbufs[place + kFramesAhead]);
}

/// Loads what serving one frame more uses, if one of those kept before `end` was not asked for.
[[gnu::always_inline]] inline void Lcore::load_next(std::size_t end, Burst& burst) const {
  burst.payloads.far.step(end, [&](std::size_t later) { load(burst.kept[later], burst); });
}

/// The same when all are kept. Besides, loads what one of them uses soon.
[[gnu::always_inline]] inline void Lcore::load_next_to_serve(Burst& burst) const {
  load_next(burst.kept_size, burst);
  burst.payloads.near.step(burst.kept_size, [&](std::size_t soon) {
    prefetch_start_of_payload(burst.kept[soon].payload());
  });
}

/// Keeps the frame at this place, whose entry this is, and those behind it that have the same one.
/// Returns the place of the next one. Not inline: it needs all registers for itself.
[[gnu::noinline]] std::size_t Lcore::keep_all_of(stage::FlowCacheEntry& entry, std::size_t place,
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
bool Lcore::keep_parsed(rte_mbuf* mbuf, Burst& burst, frame::Instant now) {
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
void Lcore::load_header(rte_mbuf* mbuf) const {
  prefetch_header_of(mbuf);
  if (parses_frames_) { // as in the burst before
    prefetch_frame(mbuf);
  }
}

/// Loads what serving the frame reads and writes.
void Lcore::load(const Kept& frame, const Burst& burst) const {
  if (frame.entry != nullptr) {
    prefetch_frame(frame.mbuf);
    if (burst.loads_slots) {
      stage::CachedPath::load_slot(*frame.entry, frame.payload());
    }
  }
  prefetch_payload<frame::Cache::second>(frame.payload());
}

void Lcore::load_connections(const Burst& burst) {
  prefetch_headers(burst.all());
  std::array<std::span<const std::uint8_t>, kBurst> frames;
  std::ranges::transform(burst.all(), frames.begin(), first_piece_of);
  worker_->cached_path().load(std::span(frames).first(burst.received), burst.port);
}

/// The frames of a burst that follow one another and have one entry, as CachedPath::take() asks for
/// them.
struct Lcore::FramesOfEntry {
  const Lcore& lcore;
  Burst& burst;
  std::size_t place; // of the next one
  const stage::FlowCacheEntry* entry;

  frame::Frame* next() {
    if (place == burst.kept_size || burst.kept[place].entry != entry) {
      return nullptr;
    }
    lcore.load_next_to_serve(burst);
    return &make_frame(burst.kept[place++].mbuf, burst.port, entry->headers.packet());
  }
};

/// Serves the kept frames in the order of arrival. Payloads are loaded while the frames before them
/// are worked on. Not inline: it needs all registers for itself.
[[gnu::noinline]] void Lcore::serve(Burst& burst, frame::Instant now) {
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
stage::FlowCacheEntry* Lcore::entry_of(const rte_mbuf* mbuf, std::uint16_t port) {
  return is_as_it_came(mbuf) ? worker_->cached_path().entry_of(bytes_of(mbuf), port) : nullptr;
}

/// False when the frame must take the stages.
bool Lcore::add_to(Run& run, rte_mbuf* mbuf, frame::Instant now) {
  if (!is_as_it_came(mbuf)) [[unlikely]] {
    return false;
  }
  const std::span<const std::uint8_t> bytes = bytes_of(mbuf);
  const std::uint16_t egress = l2_fast_path_.egress_of(bytes, run.ingress, now.ms());
  if (egress == frame::kNoPort) {
    return false;
  }
  if (egress != run.egress) {
    send(run);
    run.egress = egress;
  }
  run.mbufs[run.size++] = mbuf;
  run.bytes += bytes.size();
  return true;
}

void Lcore::send(Run& run) {
  if (run.size == 0) {
    return;
  }
  constexpr auto traffic = frame::TrafficClass::other;
  std::span<rte_mbuf* const> mbufs(run.mbufs.data(), run.size);
  counters_.received += run.size;
  ports_[run.ingress].rx_packets += run.size;
  ports_[run.ingress].rx_bytes += run.bytes;
  if (leaves_here(traffic, run.egress)) {
    TxPort& port = *tx_ports_[run.egress];
    if (run.size >= kMinBurstToDevice && !run.may_follow_results) {
      mbufs = mbufs.subspan(port.pass(mbufs, run.bytes, counters_, ports_[run.egress]));
    }
    if (!mbufs.empty()) {
      mbufs = mbufs.subspan(
          port_to_push_to(run.egress).push(mbufs, frame::Departure::forwarded, traffic));
    }
  }
  run.size = 0;
  run.bytes = 0;
  for (rte_mbuf* mbuf : mbufs) {
    make_frame(mbuf, run.ingress); // for a trace, when it is dropped on its way
    send_by({mbuf, run.egress, frame::Departure::forwarded, traffic, mbuf->pkt_len});
  }
}

wire::EtherType Lcore::outer_tag_of(std::uint16_t port) const {
  return port < shared_.outer_tags.size() ? shared_.outer_tags[port] : wire::EtherType::vlan;
}

/// nullptr when the frame was dropped.
frame::Frame* Lcore::parse(rte_mbuf* mbuf, std::uint16_t port, frame::Instant now) {
  const bool is_whole = put_vlan_tag_back(mbuf) && rte_pktmbuf_linearize(mbuf) == 0;
  if (outer_tag_of(port) == wire::EtherType::service_vlan) [[unlikely]] {
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

bool Lcore::ask(slot::Reduction& reduction) {
  const slot::Reduction::Task& task = reduction.task();
  if (helpers_.empty() || task.frames.size() * task.result.size() < kMinBytesToOffload) {
    return false;
  }
  next_helper_ = next_helper_ + 1 < helpers_.size() ? next_helper_ + 1 : 0;
  return helpers_[next_helper_]->push(&reduction);
}

unsigned Lcore::take_worker_handoffs(frame::Instant now) {
  unsigned work = 0;
  for (const auto& inbox : worker_inbox_) {
    work += take_bursts([&] { return take_worker_handoff(*inbox, now); });
  }
  return work;
}

unsigned Lcore::take_worker_handoff(WorkerHandoff& inbox, frame::Instant now) {
  std::array<rte_mbuf*, kBurst> burst;
  const unsigned count = inbox.pop(burst);
  expect(count);
  for_each_parsed(std::span(burst).first(count), [&](frame::Frame& frame) {
    ++handoff_in_;
    worker_->accept(frame, shared_.rings->ring_group_of_pair(frame.pair), now);
  });
  return count;
}

/// Tells the worker whether a burst that has so many frames is likely to be followed by another.
void Lcore::expect(std::size_t frames) {
  if (worker_) {
    worker_->queue().expect(frames == kBurst ? stage::Backlog::likely : stage::Backlog::none);
  }
}

unsigned Lcore::take_tx_handoffs() {
  unsigned work = 0;
  for (const auto& inboxes : tx_inbox_) {
    for (const auto& inbox : inboxes) {
      std::array<TxRequest, kBurst> burst;
      const unsigned count = inbox->pop(burst);
      for (const TxRequest& request : std::span(burst).first(count)) {
        handoff_in_ += request.departure == frame::Departure::copy ? 0 : 1;
        queue_on(request);
      }
      work += count;
    }
  }
  return work;
}

unsigned Lcore::make_reductions_for_others() {
  unsigned made = 0;
  for (const auto& inbox : reduction_inbox_) {
    std::array<slot::Reduction*, kReductionBurst> burst;
    const unsigned count = inbox->pop(burst);
    for (unsigned i = 0; i < count; ++i) {
      made += burst[i]->make() ? 1 : 0;
    }
  }
  rounds_.reductions_for_others += made;
  return made;
}

unsigned Lcore::flush_ports() {
  unsigned sent = 0;
  l2::for_each_port(own_tx_ports_ & ~idle_tx_ports_, [&](std::uint16_t index) {
    TxPort& port = *tx_ports_[index];
    sent += port.flush(counters_, ports_[index]);
    const bool may_pass = leaves_here(frame::TrafficClass::ring, index) && port.may_pass();
    idle_tx_ports_ |= l2::PortSet{may_pass} << index;
  });
  return sent;
}

void Lcore::transmit(frame::Frame& frame, l2::PortSet ports) {
  rte_mbuf* mbuf = mbuf_to_send(frame);
  frame::Departure departure = frame.departure;
  // Read now: after the first push the frame may be gone.
  const frame::TrafficClass traffic = frame.traffic;
  const std::uint32_t bytes = frame.length;
  if (std::has_single_bit(ports)) [[likely]] {
    const auto port = static_cast<std::uint16_t>(std::countr_zero(ports));
    return send_by({mbuf, port, departure, traffic, bytes});
  }
  const int extra = std::popcount(ports) - 1;
  rte_pktmbuf_refcnt_update(mbuf, static_cast<std::int16_t>(extra));
  l2::for_each_port(ports, [&](std::uint16_t port) {
    send_by({mbuf, port, departure, traffic, bytes});
    departure = frame::Departure::copy;
  });
}

void Lcore::transmit_results(std::span<frame::Frame* const> results,
                             std::span<const std::optional<std::uint16_t>> ports) {
  if (is_single_frame_) {
    return transmit_at_once(results, ports);
  }
  for (std::size_t place = 0; place < results.size(); ++place) {
    send_in_turn(request_for(*results[place], *ports[place]));
  }
}

/// Results leave together, when the ports are flushed. Those of the first slot that a frame
/// completes which came alone need not wait for others. All queues are loaded first, so that what
/// one waits for comes together with the others'.
[[gnu::noinline]] void
Lcore::transmit_at_once(std::span<frame::Frame* const> results,
                        std::span<const std::optional<std::uint16_t>> ports) {
  is_single_frame_ = false;
  for (const std::optional<std::uint16_t>& port : ports) {
    if (is_idle(*port)) {
      tx_ports_[*port]->load_queue(frame::TrafficClass::ring);
    }
  }
  for (std::size_t place = 0; place < results.size(); ++place) {
    const TxRequest request = request_for(*results[place], *ports[place]);
    if (!pass(request)) {
      send_in_turn(request);
    }
  }
}

/// Sends a frame, no copy, without a stay in the backlog. False when the port is not idle or the
/// device does not take it.
[[gnu::always_inline]] inline bool Lcore::pass(const TxRequest& request) {
  const auto& [mbuf, port, departure, traffic, bytes] = request;
  if (!is_idle(port) || !tx_ports_[port]->pass(mbuf, traffic)) {
    return false;
  }
  ports_[port].count_sent(traffic, 1, bytes);
  counters_.count(departure);
  return true;
}

/// Behind what waits for the port, here or at another lcore.
[[gnu::always_inline]] inline void Lcore::send_in_turn(const TxRequest& request) {
  if (!send_here(request)) [[unlikely]] {
    send_elsewhere(request);
  }
}

/// By a port of this lcore, through its backlog. False when the port is another lcore's or the
/// backlog is full.
[[gnu::always_inline]] inline bool Lcore::send_here(const TxRequest& request) {
  const auto& [mbuf, port, departure, traffic, bytes] = request;
  return leaves_here(traffic, port) && port_to_push_to(port).push(mbuf, bytes, departure, traffic);
}

/// The lcore's own port, for which a frame may wait from now on.
[[gnu::always_inline]] inline TxPort& Lcore::port_to_push_to(std::uint16_t port) {
  set_busy(port);
  return *tx_ports_[port];
}

/// To another lcore, or to a port whose backlog is full.
[[gnu::noinline]] void Lcore::send_elsewhere(const TxRequest& request) {
  send_by(request);
}

[[gnu::always_inline]] inline void Lcore::send_by(const TxRequest& request) {
  Outbox<TxRequest>* next = tx_routes_[static_cast<std::size_t>(request.traffic)][request.port];
  if (next == nullptr) {
    return queue_on(request);
  }
  handoff_out_ += request.departure == frame::Departure::copy ? 0 : 1;
  next->put(request, [this](const TxRequest& refused) { take_back(refused); });
}

/// For a request that the transmitting lcore is too slow to take.
void Lcore::take_back(const TxRequest& request) {
  handoff_out_ -= request.departure == frame::Departure::copy ? 0 : 1;
  could_not_leave(request, queue_full(request.traffic));
}

/// For a frame that the worker is too slow to take.
void Lcore::take_back(rte_mbuf* mbuf, frame::Instant now) {
  --handoff_out_;
  --rounds_.handed_over;
  forward_.drop<stage::StageId::dispatch>(frame_of(mbuf), DropReason::worker_queue_full, now);
}

void Lcore::hand_on(frame::Instant now) {
  for (const auto& [worker, outbox] : worker_outboxes_) {
    outbox->flush([&](rte_mbuf* mbuf) { take_back(mbuf, now); });
  }
  for (const TxOutboxes& outboxes : tx_outboxes_) {
    for (const auto& [transmitter, outbox] : outboxes) {
      outbox->flush([this](const TxRequest& request) { take_back(request); });
    }
  }
}

[[gnu::always_inline]] inline void Lcore::queue_on(const TxRequest& request) {
  TxPort& port = port_to_push_to(request.port);
  if (!port.push(request.mbuf, request.bytes, request.departure, request.traffic)) [[unlikely]] {
    queue_on_full(port, request);
  }
}

void Lcore::queue_on_full(TxPort& port, const TxRequest& request) {
  port.flush(counters_, ports_[request.port]);
  if (!port.push(request.mbuf, request.bytes, request.departure, request.traffic)) {
    could_not_leave(request, port.why_refused(request.traffic));
  }
}

void Lcore::could_not_leave(const TxRequest& request, DropReason reason) {
  forward_.note(frame_of(request.mbuf), now_, [&] {
    return frame::TraceRecord{.egress = l2::PortSet{1} << request.port,
                              .event = frame::TraceEvent::dropped,
                              .drop = reason,
                              .dropped_by = stage::number_of(stage::StageId::transmit)};
  });
  count_undelivered(request.departure, reason, counters_);
  ports_[request.port].count_dropped(request.traffic);
  free_mbuf(request.mbuf);
}

void Lcore::release(frame::Frame& frame) {
  free_mbuf(mbuf_of(frame));
}

frame::Frame* Lcore::originate(std::uint32_t bytes) {
  rte_mbuf* mbuf = shared_.pool == nullptr ? nullptr : rte_pktmbuf_alloc(shared_.pool);
  if (mbuf == nullptr) {
    return nullptr;
  }
  if (rte_pktmbuf_tailroom(mbuf) < bytes) {
    rte_pktmbuf_free(mbuf);
    return nullptr;
  }
  return &make_frame(mbuf, frame::kNoPort);
}

void Lcore::to_worker(frame::Frame& frame, std::uint16_t ring_group, frame::Instant now) {
  Outbox<rte_mbuf*>* next = worker_routes_[ring_group];
  if (next == nullptr) {
    return worker_->accept(frame, ring_group, now);
  }
  if (frame.packet.parsed == wire::Parsed::message) {
    // Here, because any lcore can verify, and the ring has only one worker.
    wire::verify_icrc(frame);
  }
  ++handoff_out_;
  ++rounds_.handed_over;
  next->put(mbuf_of(frame), [&](rte_mbuf* mbuf) { take_back(mbuf, now); });
}

void Lcore::rest_after(unsigned work) {
  if (work != 0) {
    empty_rounds_ = 0;
    return;
  }
  switch (idle_) {
  case Idle::spin:
    return;
  case Idle::yield:
    return std::this_thread::yield();
  case Idle::sleep:
    if (++empty_rounds_ > kRoundsBeforeSleep) {
      std::this_thread::sleep_for(kRest);
    }
  }
}

/// Called before a stop. Does the stop's other work at a time when nobody waits for it.
void Lcore::wake() {
  if (state_.load(std::memory_order_relaxed) != State::awake) {
    switches_when_awake_ = context_switches();
    state_.store(State::awake, std::memory_order_release);
  }
}

/// Spins, because an lcore that sleeps here wakes up too late for a NIC's receive queue. Only after
/// a long stop it lets other threads use the CPU.
void Lcore::wait_for_resume(const Clock& clock) {
  const std::uint64_t start = clock.now().ns;
  state_.store(State::quiescent, std::memory_order_release);
  std::uint64_t spins = 0;
  for (; request_.load(std::memory_order_acquire) == Request::quiesce; ++spins) {
    if (spins < kSpinsBeforeYield) {
      rte_pause();
    } else {
      std::this_thread::yield();
    }
  }
  state_.store(State::running, std::memory_order_release);
  const std::uint64_t quiesced_ns = clock.now().ns - start;
  rounds_.quiescent_ns.add(quiesced_ns);
  const std::uint64_t yields = std::max(spins, kSpinsBeforeYield) - kSpinsBeforeYield;
  rounds_.last_stop = {quiesced_ns, context_switches() - switches_when_awake_ <= yields};
}

std::uint64_t Lcore::queued() const {
  // May be negative on one lcore; the sum over all lcores is right.
  std::uint64_t frames = handoff_out_ - handoff_in_;
  for (const auto& port : tx_ports_) {
    frames += port ? port->frames_waiting() : 0;
  }
  frames += worker_ ? worker_->queue().lines().size() : 0;
  return frames;
}

void Lcore::discard_queued() {
  if (worker_) {
    worker_->queue().discard(now_);
  }
  discard_handed_on();
  for (std::size_t port = 0; port < tx_ports_.size(); ++port) {
    if (tx_ports_[port]) {
      tx_ports_[port]->discard(counters_, ports_[port]);
    }
  }
}

void Lcore::discard_handed_on() {
  for (const TxOutboxes& outboxes : tx_outboxes_) { // sent by a reset
    for (const auto& [transmitter, outbox] : outboxes) {
      outbox->discard([this](const TxRequest& request) { take_back(request); });
    }
  }
  rte_mbuf* mbuf = nullptr;
  for (const auto& inbox : worker_inbox_) {
    while (inbox->pop({&mbuf, 1}) != 0) {
      ++handoff_in_;
      counters_.count(DropReason::worker_queue_full);
      free_mbuf(mbuf);
    }
  }
  TxRequest request;
  for (const auto& inboxes : tx_inbox_) {
    for (const auto& inbox : inboxes) {
      while (inbox->pop({&request, 1}) != 0) {
        handoff_in_ += request.departure == frame::Departure::copy ? 0 : 1;
        could_not_leave(request, queue_full(request.traffic));
      }
    }
  }
}

bool Lcore::transmits() const {
  return std::ranges::any_of(tx_ports_,
                             [](const auto& port) { return port && !port->is_closed(); });
}

} // namespace weir::lcore
