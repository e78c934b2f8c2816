// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/counters.hpp"
#include "frame/frame.hpp"
#include "lcore/tx_arbiter.hpp"

#include <rte_mbuf.h>

#include <array>
#include <cstdint>
#include <vector>

namespace weir::lcore {

/// The name of a frame's drop where a port takes no more of its class.
constexpr DropReason backlog_full(frame::TrafficClass traffic) {
  return traffic == frame::TrafficClass::ring ? DropReason::ring_tx_backlog_full
                                              : DropReason::tx_backlog_full;
}

/// The same where the lcore that transmits takes no more of it.
constexpr DropReason queue_full(frame::TrafficClass traffic) {
  return traffic == frame::TrafficClass::ring ? DropReason::ring_tx_queue_full
                                              : DropReason::tx_queue_full;
}

/// A frame, or a copy of one, does not leave after all.
inline void count_undelivered(frame::Departure departure, DropReason reason,
                              frame::FrameCounters& counters) {
  if (departure == frame::Departure::copy) {
    ++counters.copies_dropped;
  } else {
    counters.count(reason);
  }
}

/// The transmit queues of a device, by traffic class; one and the same where it has but one.
struct TxQueues {
  std::uint16_t device = 0;
  std::array<std::uint16_t, frame::kTrafficClasses> queues{};
};

/// The last stage: one port's transmit queues, and behind them a backlog of each traffic class for
/// what the device does not take at once (a completed slot sends H frames in one go). A port that
/// stays full fills its own backlogs and no other's. Owned by one lcore.
///
/// Which class leaves next is TxArbiter's decision, also where the device has a queue for each: a
/// NIC serves its queues in turn, so that on a full link the other class would get half of it.
class TxPort {
 public:
  /// Frames, by class: powers of two. Closing a gap releases many results at once; other traffic
  /// gains nothing by a longer wait.
  static constexpr std::array<std::uint32_t, frame::kTrafficClasses> kBacklogs{4096, 2048};

  explicit TxPort(const TxQueues& queues);

  /// False when the backlog of this class is full; the caller keeps the mbuf.
  bool push(rte_mbuf* mbuf, frame::Departure departure, frame::TrafficClass traffic);

  /// Gives the device what it takes; counts what has left. Returns the number of frames.
  unsigned flush(frame::FrameCounters& counters, frame::PortCounters& port);

  /// Drops what has not left, for the end.
  void discard(frame::FrameCounters& counters, frame::PortCounters& port);

  std::uint32_t waiting(frame::TrafficClass traffic) const { return backlog(traffic).size(); }

  /// Of all that waits, entries that stand for a frame rather than for a copy.
  std::uint32_t frames_waiting() const { return frames_waiting_; }

 private:
  static constexpr std::uint16_t kBurst = 64;

  struct Entry {
    rte_mbuf* mbuf = nullptr;
    std::uint32_t bytes = 0; // the device frees an mbuf when it likes
    frame::Departure departure{};
  };

  /// First in, first out.
  class Backlog {
   public:
    explicit Backlog(std::uint32_t frames) : entries_(frames) {}

    std::uint32_t size() const { return tail_ - head_; }

    bool is_full() const { return size() == entries_.size(); }

    const Entry& at(std::uint32_t place) const { return entries_[(head_ + place) & mask()]; }

    void push(const Entry& entry) { entries_[tail_++ & mask()] = entry; }

    void pop() { ++head_; }

   private:
    std::uint32_t mask() const { return static_cast<std::uint32_t>(entries_.size()) - 1; }

    std::vector<Entry> entries_;
    std::uint32_t head_ = 0; // next to leave
    std::uint32_t tail_ = 0; // next free
  };

  /// What is to leave next, in order, and how far into each backlog that goes.
  struct Plan {
    std::array<frame::TrafficClass, kBurst> turns;
    std::uint16_t size = 0;
    std::array<std::array<rte_mbuf*, kBurst>, frame::kTrafficClasses> mbufs; // by class
    std::array<std::uint16_t, frame::kTrafficClasses> counts{};
  };

  /// How many of a plan's frames the device has taken, by class.
  using Taken = std::array<std::uint16_t, frame::kTrafficClasses>;

  Backlog& backlog(frame::TrafficClass traffic) {
    return backlogs_[static_cast<std::size_t>(traffic)];
  }

  const Backlog& backlog(frame::TrafficClass traffic) const {
    return backlogs_[static_cast<std::size_t>(traffic)];
  }

  Plan make_plan() const;
  Taken send_by_one_queue(const Plan& plan) const;
  Taken send_by_two_queues(Plan& plan) const;
  unsigned count_departures(const Plan& plan, Taken taken, frame::FrameCounters& counters,
                            frame::PortCounters& port);
  void depart(frame::TrafficClass traffic, frame::FrameCounters& counters,
              frame::PortCounters& port);

  TxQueues queues_;
  std::array<Backlog, frame::kTrafficClasses> backlogs_;
  TxArbiter arbiter_;
  std::uint32_t frames_waiting_ = 0;
};

} // namespace weir::lcore
