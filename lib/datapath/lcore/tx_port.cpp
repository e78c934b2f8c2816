// SPDX-License-Identifier: BSD-3-Clause
#include "lcore/tx_port.hpp"

#include "frame/frame.hpp"
#include "lcore/mbuf_frame.hpp"

#include <rte_ethdev.h>

#include <algorithm>
#include <cassert>

namespace weir::lcore {

using frame::TrafficClass;

namespace {

constexpr auto kRing = static_cast<std::size_t>(TrafficClass::ring);
constexpr auto kOther = static_cast<std::size_t>(TrafficClass::other);

} // namespace

TxPort::TxPort(const TxQueues& queues)
    : queues_(queues), backlogs_{Backlog(queues.ring_backlog), Backlog(kTxBacklogs[kOther])} {}

TxPort::Sum TxPort::Backlog::pop_some(std::uint32_t entries) {
  Sum left;
  for (std::uint32_t place = 0; place < entries; ++place) {
    left.add(at(place));
  }
  assert(sum_.bytes >= left.bytes && sum_.consumed >= left.consumed && sum_.copies >= left.copies);
  head_ += entries;
  sum_.bytes -= left.bytes;
  sum_.consumed -= left.consumed;
  sum_.copies -= left.copies;
  return left;
}

std::size_t TxPort::enqueue(std::span<rte_mbuf* const> mbufs, frame::Departure departure,
                            TrafficClass traffic) {
  Backlog& waiting = backlog(traffic);
  const auto taken = mbufs.first(std::min<std::size_t>(mbufs.size(), waiting.room()));
  for (rte_mbuf* mbuf : taken) {
    waiting.push(mbuf, {mbuf->pkt_len, departure});
  }
  return taken.size();
}

std::size_t TxPort::tx_burst(std::span<rte_mbuf* const> mbufs, std::uint64_t bytes,
                             frame::FrameCounters& counters, frame::PortCounters& port) {
  if (!may_tx_burst()) {
    return 0;
  }
  std::array<rte_mbuf*, kBurst> offered;
  const auto size = static_cast<std::uint16_t>(std::min<std::size_t>(mbufs.size(), kBurst));
  std::ranges::copy(mbufs.first(size), offered.begin());
  std::ranges::for_each(mbufs.first(size), hands_over);
  const std::uint16_t sent =
      rte_eth_tx_burst(queues_.device, queue_of(TrafficClass::other), offered.data(), size);
  for (const rte_mbuf* kept : mbufs.subspan(sent)) {
    bytes -= kept->pkt_len;
  }
  port.count_sent(TrafficClass::other, sent, bytes);
  counters.forwarded += sent;
  return sent;
}

/// The next frames of a class leave. Charges nobody.
[[gnu::always_inline]] inline void TxPort::depart(TrafficClass traffic, unsigned frames,
                                                  frame::FrameCounters& counters,
                                                  frame::PortCounters& port) {
  const Sum left = backlog(traffic).pop(frames);
  if (traffic == TrafficClass::other && backlog(traffic).size() == 0) {
    arbiter_.forget();
  }
  port.count_sent(traffic, frames, left.bytes);
  counters.forwarded += frames - left.consumed - left.copies;
  counters.consumed += left.consumed;
  counters.copies += left.copies;
}

/// Until the device takes no more.
template <TrafficClass kTraffic>
unsigned TxPort::tx_burst_all_of(frame::FrameCounters& counters, frame::PortCounters& port) {
  const std::uint16_t queue = queue_of(kTraffic);
  unsigned sent_in_all = 0;
  for (;;) {
    const std::span<rte_mbuf*> mbufs = backlog(kTraffic).front(kBurst);
    std::ranges::for_each(mbufs, hands_over);
    const std::uint16_t sent = rte_eth_tx_burst(queues_.device, queue, mbufs.data(),
                                                static_cast<std::uint16_t>(mbufs.size()));
    depart(kTraffic, sent, counters, port);
    sent_in_all += sent;
    if (sent != mbufs.size() || waiting(kTraffic) == 0) {
      return sent_in_all;
    }
  }
}

template unsigned TxPort::tx_burst_all_of<TrafficClass::ring>(frame::FrameCounters& counters,
                                                              frame::PortCounters& port);

/// While frames of class `other` wait, and perhaps results. At the end one class alone is left.
unsigned TxPort::flush_by_turns(frame::FrameCounters& counters, frame::PortCounters& port) {
  unsigned sent_in_all = 0;
  while (both_wait()) {
    const auto [offered, sent] = offer_both(counters, port);
    sent_in_all += sent;
    if (sent != offered) {
      return sent_in_all;
    }
  }
  return sent_in_all + flush_alone<TrafficClass::ring>(counters, port) +
         flush_alone<TrafficClass::other>(counters, port);
}

TxPort::Offer TxPort::offer_both(frame::FrameCounters& counters, frame::PortCounters& port) {
  Plan plan = make_plan();
  const bool is_one_queue = queue_of(TrafficClass::ring) == queue_of(TrafficClass::other);
  const Taken taken = is_one_queue ? tx_burst_to_one_queue(plan) : tx_burst_to_two_queues(plan);
  return {plan.size, count_departures(plan, taken, counters, port)};
}

/// The arbiter's next decisions, made on a copy: the device may take fewer frames.
TxPort::Plan TxPort::make_plan() const {
  Plan plan;
  TxArbiter arbiter = arbiter_;
  const Backlog& ring = backlogs_[kRing];
  const Backlog& other = backlogs_[kOther];
  while (plan.size < kBurst) {
    const bool ring_waits = plan.counts[kRing] < ring.size();
    const bool other_waits = plan.counts[kOther] < other.size();
    if (!ring_waits && !other_waits) {
      break;
    }
    TrafficClass traffic = ring_waits ? TrafficClass::ring : TrafficClass::other;
    if (ring_waits && other_waits) {
      traffic = arbiter.next(other.at(plan.counts[kOther]).bytes);
      const auto place = plan.counts[static_cast<std::size_t>(traffic)];
      arbiter.charge(traffic, backlog(traffic).at(place).bytes);
    }
    const auto index = static_cast<std::size_t>(traffic);
    rte_mbuf* mbuf = backlogs_[index].mbuf_at(plan.counts[index]);
    hands_over(mbuf);
    plan.mbufs[index][plan.counts[index]++] = mbuf;
    plan.turns[plan.size++] = traffic;
  }
  return plan;
}

TxPort::Taken TxPort::tx_burst_to_one_queue(const Plan& plan) const {
  std::array<rte_mbuf*, kBurst> mbufs;
  Taken place{};
  for (std::uint16_t turn = 0; turn < plan.size; ++turn) {
    const auto index = static_cast<std::size_t>(plan.turns[turn]);
    mbufs[turn] = plan.mbufs[index][place[index]++];
  }
  const std::uint16_t sent =
      rte_eth_tx_burst(queues_.device, queue_of(TrafficClass::ring), mbufs.data(), plan.size);
  Taken taken{};
  for (std::uint16_t turn = 0; turn < sent; ++turn) {
    ++taken[static_cast<std::size_t>(plan.turns[turn])];
  }
  return taken;
}

/// Frames of the other class keep their turn: they also wait when the device does not take the ring
/// frame before them.
TxPort::Taken TxPort::tx_burst_to_two_queues(Plan& plan) const {
  Taken taken{};
  taken[kRing] = rte_eth_tx_burst(queues_.device, queue_of(TrafficClass::ring),
                                  plan.mbufs[kRing].data(), plan.counts[kRing]);
  Taken due{};
  for (std::uint16_t turn = 0; turn < plan.size && due[kRing] <= taken[kRing]; ++turn) {
    ++due[static_cast<std::size_t>(plan.turns[turn])];
  }
  taken[kOther] = rte_eth_tx_burst(queues_.device, queue_of(TrafficClass::other),
                                   plan.mbufs[kOther].data(), due[kOther]);
  return taken;
}

unsigned TxPort::count_departures(const Plan& plan, Taken taken, frame::FrameCounters& counters,
                                  frame::PortCounters& port) {
  unsigned sent = 0;
  for (std::uint16_t turn = 0; turn < plan.size; ++turn) {
    auto& left = taken[static_cast<std::size_t>(plan.turns[turn])];
    if (left != 0) {
      --left;
      ++sent;
      depart(plan.turns[turn], counters, port);
    }
  }
  return sent;
}

void TxPort::depart(TrafficClass traffic, frame::FrameCounters& counters,
                    frame::PortCounters& port) {
  if (both_wait()) {
    arbiter_.charge(traffic, backlog(traffic).at(0).bytes);
  }
  depart(traffic, 1, counters, port);
}

void TxPort::discard(frame::FrameCounters& counters, frame::PortCounters& port) {
  for (const TrafficClass traffic : {TrafficClass::ring, TrafficClass::other}) {
    empty(traffic, backlog_full(traffic), counters, port);
  }
}

void TxPort::close(frame::FrameCounters& counters, frame::PortCounters& port) {
  for (const TrafficClass traffic : {TrafficClass::ring, TrafficClass::other}) {
    empty(traffic, DropReason::port_closed, counters, port);
    backlog(traffic) = Backlog(0);
  }
}

void TxPort::empty(TrafficClass traffic, DropReason reason, frame::FrameCounters& counters,
                   frame::PortCounters& port) {
  arbiter_.forget();
  for (Backlog& waiting = backlog(traffic); waiting.size() != 0; waiting.pop()) {
    const Entry& entry = waiting.at(0);
    count_undelivered(entry.departure, reason, counters);
    port.count_dropped(traffic);
    free_mbuf(waiting.mbuf_at(0));
  }
}

} // namespace weir::lcore
