// SPDX-License-Identifier: BSD-3-Clause
#include "lcore/lcore.hpp"

#include "lcore/context_switches.hpp"
#include "lcore/mbuf_frame.hpp"
#include "lcore/prefetch.hpp"
#include "op/float_environment.hpp"
#include "wire/icrc.hpp"

#include <rte_pause.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <thread>
#include <utility>

namespace weir::lcore {

Lcore::Lcore(unsigned id, Idle idle, const Shared& shared, int node)
    : id_(id), idle_(idle), shared_(shared), handoffs_(id, node, shared.rings->pairs(), rounds_),
      forward_(shared.bridge, shared.max_frame_bytes, transmitter_, counters_, trace_),
      transmitter_(handoffs_, forward_, shared.pool, counters_, ports_),
      rx_burst_({.shared = shared_,
                 .worker = worker_,
                 .workers = *this,
                 .forward = forward_,
                 .transmitter = transmitter_,
                 .counters = counters_,
                 .ports = ports_,
                 .rounds = rounds_}) {}

void Lcore::remove_rx_queues(std::uint16_t port) {
  std::erase_if(rx_queues_, [port](const RxQueue& queue) { return queue.port == port; });
}

void Lcore::set_frame_limit(std::uint16_t port, std::optional<std::uint32_t> bytes) {
  forward_.set_frame_limit(port, bytes);
}

void Lcore::make_worker(std::vector<std::uint16_t> rings, stage::Worker::Settings settings) {
  settings.helpers = &handoffs_;
  settings.peers = this;
  worker_.emplace(shared_.rings, std::move(rings), settings, shared_.bridge, forward_, counters_);
}

void Lcore::route_port(std::uint16_t port, Lcore& transmitter) {
  transmitter_.set_busy(port); // until the next flush
  handoffs_.route_port(port, transmitter.handoffs_);
}

void Lcore::set_aging(std::uint64_t milliseconds) {
  rx_burst_.set_aging(milliseconds);
  if (worker_) {
    worker_->set_aging(milliseconds);
  }
}

bool Lcore::originate(std::span<const std::uint8_t> bytes, std::uint16_t port, frame::Instant now) {
  frame::Frame* frame = forward_.originate(static_cast<std::uint32_t>(bytes.size()));
  if (frame == nullptr) {
    return false;
  }
  std::ranges::copy(bytes, frame->data);
  frame->length = static_cast<std::uint32_t>(bytes.size());
  forward_.send(*frame, frame::Departure::consumed, now, stage::Forward::kForwarded, port);
  return true;
}

void Lcore::run() {
  const op::DefaultFloatEnvironment environment; // not that of what is loaded into the process (I8)
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
  transmitter_.begin_round(now);
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
  work += handoffs_.make_reductions_for_others();
  flush_handoffs(now);
  work +=
      handoffs_.take_requests([this](const TxRequest& request) { transmitter_.enqueue(request); });
  work += transmitter_.flush();
  ++rounds_.rounds;
  rounds_.idle_rounds += work == 0 ? 1 : 0;
  return work;
}

unsigned Lcore::receive_all(frame::Instant now) {
  unsigned frames = 0;
  for (const RxQueue& queue : rx_queues_) {
    frames += take_bursts([&] { return rx_burst_.receive(queue, now); });
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
  const std::size_t most = kBurst * (rx_queues_.size() + handoffs_.worker_inboxes());
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
                    [&](frame::Frame& frame) { queue.go_on(frame, now); });
    served += count;
  }
  return served;
}

/// Checks whether the mempool is empty. Not every driver counts frames that it lost for lack of an
/// mbuf; an empty pool would then look like idle ports.
void Lcore::check_mempool() {
  std::array<void*, kBurst> mbufs;
  if (rte_mempool_get_bulk(shared_.pool, mbufs.data(), kBurst) == 0) {
    rte_mempool_put_bulk(shared_.pool, mbufs.data(), kBurst);
  } else {
    ++rounds_.starved_rounds;
  }
}

unsigned Lcore::take_worker_handoffs(frame::Instant now) {
  unsigned work = 0;
  for (std::size_t inbox = 0; inbox < handoffs_.worker_inboxes(); ++inbox) {
    work += take_bursts([&] { return take_worker_handoff(inbox, now); });
  }
  return work;
}

unsigned Lcore::take_worker_handoff(std::size_t inbox, frame::Instant now) {
  std::array<rte_mbuf*, kBurst> burst;
  const unsigned count = handoffs_.take_frames(inbox, burst);
  expect_more_after(count, worker_);
  if (handoffs_.is_for_regions(inbox)) [[unlikely]] {
    for_each_parsed(std::span(burst).first(count),
                    [&](frame::Frame& frame) { worker_->accept_for_region(frame, now); });
    return count;
  }
  for_each_parsed(std::span(burst).first(count), [&](frame::Frame& frame) {
    worker_->accept(frame, shared_.rings->ring_group_of_pair(frame.pair), now);
  });
  return count;
}

void Lcore::to_worker(frame::Frame& frame, std::uint16_t ring_group, frame::Instant now) {
  if (handoffs_.is_own_pair(frame.pair)) {
    return worker_->accept(frame, ring_group, now);
  }
  Outbox<rte_mbuf*>* const way = handoffs_.way_of(frame, shared_.owners);
  if (way == nullptr) {
    return worker_->accept(frame, ring_group, now);
  }
  if (frame.packet.parsed == wire::Parsed::message) {
    // Here, because any lcore can verify, and the ring has only one worker.
    wire::verify_icrc(frame);
  }
  handoffs_.handoff(mbuf_of(frame), *way, [&](rte_mbuf* refused) { drop_refused(refused, now); });
}

/// All regions are one worker's.
void Lcore::to_region(frame::Frame& frame, frame::Instant now) {
  Outbox<rte_mbuf*>* const way = handoffs_.way_to_regions();
  if (way == nullptr) {
    assert(worker_);
    return worker_->accept_for_region(frame, now);
  }
  if (frame.packet.parsed == wire::Parsed::message) {
    wire::verify_icrc(frame);
  }
  handoffs_.handoff(mbuf_of(frame), *way, [&](rte_mbuf* refused) { drop_refused(refused, now); });
}

/// A hello that this lcore's worker leaves to another one.
void Lcore::to_worker_of(std::uint16_t ring, frame::Frame& frame, frame::Instant now) {
  Outbox<rte_mbuf*>* const way = handoffs_.way_to_ring(ring);
  assert(way != nullptr);
  handoffs_.handoff(mbuf_of(frame), *way, [&](rte_mbuf* refused) { drop_refused(refused, now); });
}

/// For a frame that the worker was too slow to take.
void Lcore::drop_refused(rte_mbuf* mbuf, frame::Instant now) {
  forward_.drop<stage::StageId::dispatch>(frame_of(mbuf), DropReason::worker_queue_full, now);
}

void Lcore::flush_handoffs(frame::Instant now) {
  handoffs_.flush([&](rte_mbuf* refused) { drop_refused(refused, now); },
                  [&](const TxRequest& refused) { transmitter_.drop_refused(refused); });
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
    if (const auto time = sleep_after(++empty_rounds_); time.count() != 0) {
      std::this_thread::sleep_for(time);
    }
  }
}

/// Called before a stop. Does the stop's other work at a time when nobody waits for it.
void Lcore::wake() {
  assert(state_.load(std::memory_order_relaxed) != State::quiescent);
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
  return handoffs_.under_way() + transmitter_.frames_waiting() +
         (worker_ ? worker_->queue().lines().size() : 0);
}

void Lcore::discard_queued() {
  if (worker_) {
    worker_->queue().discard(now_);
  }
  handoffs_.discard(
      [this](rte_mbuf* mbuf) {
        counters_.count(DropReason::worker_queue_full);
        free_mbuf(mbuf);
      },
      [this](const TxRequest& request) { transmitter_.drop_refused(request); });
  transmitter_.discard();
}

} // namespace weir::lcore
