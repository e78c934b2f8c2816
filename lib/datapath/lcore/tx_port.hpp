// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/counters.hpp"
#include "frame/frame.hpp"
#include "frame/prefetch.hpp"
#include "lcore/happens_before.hpp"
#include "lcore/tx_arbiter.hpp"

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace weir::lcore {

/// The drop reason when the port's backlog of this class is full.
constexpr DropReason backlog_full(frame::TrafficClass traffic) {
  return traffic == frame::TrafficClass::ring ? DropReason::ring_tx_backlog_full
                                              : DropReason::tx_backlog_full;
}

/// The drop reason when the hand-off to the transmitting lcore is full.
constexpr DropReason queue_full(frame::TrafficClass traffic) {
  return traffic == frame::TrafficClass::ring ? DropReason::ring_tx_queue_full
                                              : DropReason::tx_queue_full;
}

/// Counts a frame, or a copy of one, that does not leave after all.
inline void count_undelivered(frame::Departure departure, DropReason reason,
                              frame::FrameCounters& counters) {
  if (departure == frame::Departure::copy) {
    ++counters.copies_dropped;
  } else {
    counters.count(reason);
  }
}

/// Frames in each class's backlog, at least; powers of two. Other traffic gains nothing from a
/// longer wait.
inline constexpr std::array<std::uint32_t, frame::kTrafficClasses> kTxBacklogs{4096, 2048};

/// A device's transmit queues, by traffic class. With one queue, both entries are the same.
struct TxQueues {
  std::uint16_t device = 0;
  std::array<std::uint16_t, frame::kTrafficClasses> queues{};
  /// A filled gap releases the results of a whole window at once; a power of two.
  std::uint32_t ring_backlog = kTxBacklogs[static_cast<std::size_t>(frame::TrafficClass::ring)];
};

/// The transmit queues of one port. Each traffic class has a backlog for frames
/// that the device does not take at once (a completed slot sends H frames together). A port that
/// stays full fills only its own backlogs. One lcore owns it.
///
/// TxArbiter decides which class leaves next, even if the device has a queue for each class: a NIC
/// serves its queues in turn, so the other class would get half of a full link.
class TxPort {
 public:
  explicit TxPort(const TxQueues& queues);

  /// Puts a frame of so many bytes into the backlog. False when the backlog of this class is full;
  /// the caller keeps the mbuf.
  bool enqueue(rte_mbuf* mbuf, std::uint32_t bytes, frame::Departure departure,
               frame::TrafficClass traffic) {
    assert(rte_mbuf_refcnt_read(mbuf) != 0);
    Backlog& waiting = backlog(traffic);
    if (waiting.room() == 0) [[unlikely]] {
      return false;
    }
    waiting.push(mbuf, {bytes, departure});
    return true;
  }

  /// The same with frames one after the other. Returns how many found room; the caller keeps the
  /// rest.
  std::size_t enqueue(std::span<rte_mbuf* const> mbufs, frame::Departure departure,
                      frame::TrafficClass traffic);

  /// Whether frames may leave without a stay in the backlog: nothing waits.
  bool may_tx_burst() const { return !is_closed() && is_empty(); }

  /// Loads what tx_burst() reads first of all that the driver knows of the queue. It is found in
  /// the table that rte_eth_tx_burst, which is inline, reads as well.
  void load_queue(frame::TrafficClass traffic) const {
    frame::prefetch(rte_eth_fp_ops[queues_.device].txq.data[queue_of(traffic)]);
  }

  /// Gives the device a frame for which may_tx_burst(). False when it does not take it: the caller
  /// keeps the mbuf. Who calls counts the frame.
  bool tx_burst(rte_mbuf* mbuf, frame::TrafficClass traffic) const {
    assert(may_tx_burst());
    hands_over(mbuf);
    return rte_eth_tx_burst(queues_.device, queue_of(traffic), &mbuf, 1) != 0;
  }

  /// The same for frames of class `other`, `bytes` long together, if may_tx_burst(); counts them.
  /// Returns how many the device has taken; the caller keeps the rest.
  std::size_t tx_burst(std::span<rte_mbuf* const> mbufs, std::uint64_t bytes,
                       frame::FrameCounters& counters, frame::PortCounters& port);

  /// Gives the device the frames that it takes, and counts them. Returns their number.
  unsigned flush(frame::FrameCounters& counters, frame::PortCounters& port) {
    if (waiting(frame::TrafficClass::other) != 0) {
      return flush_by_turns(counters, port);
    }
    return flush_alone<frame::TrafficClass::ring>(counters, port);
  }

  /// Drops all that has not left, each frame as its backlog's being full. Called at the end.
  void discard(frame::FrameCounters& counters, frame::PortCounters& port);

  /// Drops all that has not left as DropReason::port_closed, and takes nothing from then on.
  void close(frame::FrameCounters& counters, frame::PortCounters& port);

  bool is_closed() const { return backlogs_[0].capacity() == 0; }

  /// Why enqueue() refuses a frame of this class.
  DropReason why_refused(frame::TrafficClass traffic) const {
    return is_closed() ? DropReason::port_closed : backlog_full(traffic);
  }

  std::uint32_t waiting(frame::TrafficClass traffic) const { return backlog(traffic).size(); }

  /// Waiting entries that stand for a frame, not for a copy.
  std::uint32_t frames_waiting() const {
    return backlogs_[0].size() - backlogs_[0].sum().copies + backlogs_[1].size() -
           backlogs_[1].sum().copies;
  }

 private:
  static constexpr std::uint16_t kBurst = 64;

  /// What is known of a frame apart from its mbuf, which the device may free at any time.
  struct Entry {
    std::uint32_t bytes = 0;
    frame::Departure departure{};
  };

  /// Of several entries.
  struct Sum {
    std::uint64_t bytes = 0;
    std::uint32_t consumed = 0;
    std::uint32_t copies = 0;

    void add(const Entry& entry) {
      bytes += entry.bytes;
      consumed += entry.departure == frame::Departure::consumed ? 1 : 0;
      copies += entry.departure == frame::Departure::copy ? 1 : 0;
    }
  };

  /// First in, first out.
  class Backlog {
   public:
    /// For a power of two of frames, or none.
    explicit Backlog(std::uint32_t frames) : mbufs_(frames), entries_(frames), capacity_(frames) {
      assert((frames & (frames - 1)) == 0);
    }

    std::uint32_t size() const { return tail_ - head_; }

    std::uint32_t capacity() const { return capacity_; }

    std::uint32_t room() const { return capacity() - size(); }

    /// Of all that wait.
    const Sum& sum() const { return sum_; }

    const Entry& at(std::uint32_t place) const { return entries_[(head_ + place) & mask()]; }

    /// The next mbufs to leave, at most so many. Stops where the memory ends: those that begin it
    /// anew are the next ones then.
    std::span<rte_mbuf*> front(std::uint32_t most) {
      const std::uint32_t first = head_ & mask();
      return {mbufs_.data() + first, std::min({most, size(), capacity_ - first})};
    }

    rte_mbuf* mbuf_at(std::uint32_t place) const { return mbufs_[(head_ + place) & mask()]; }

    void push(rte_mbuf* mbuf, const Entry& entry) {
      assert(room() != 0 && (size() != 0 || sum_.bytes == 0));
      const std::uint32_t place = tail_++ & mask();
      mbufs_[place] = mbuf;
      entries_[place] = entry;
      sum_.add(entry);
    }

    /// Takes the next entries away. Returns their sum.
    Sum pop(std::uint32_t entries = 1) {
      assert(entries <= size());
      if (entries == size()) [[likely]] {
        head_ = tail_ = 0; // the first entries are still in cache
        return std::exchange(sum_, {});
      }
      return pop_some(entries);
    }

   private:
    Sum pop_some(std::uint32_t entries);

    std::uint32_t mask() const { return capacity_ - 1; }

    std::vector<rte_mbuf*> mbufs_;
    std::vector<Entry> entries_; // of the mbufs
    std::uint32_t capacity_;
    std::uint32_t head_ = 0; // next to leave
    std::uint32_t tail_ = 0; // next free
    Sum sum_;                // of those between
  };

  /// The next frames to leave, in order, and how many of each backlog they are.
  struct Plan {
    std::array<frame::TrafficClass, kBurst> turns;
    std::uint16_t size = 0;
    std::array<std::array<rte_mbuf*, kBurst>, frame::kTrafficClasses> mbufs; // by class
    std::array<std::uint16_t, frame::kTrafficClasses> counts{};
  };

  /// How many of a plan's frames the device took, by class.
  using Taken = std::array<std::uint16_t, frame::kTrafficClasses>;

  Backlog& backlog(frame::TrafficClass traffic) {
    return backlogs_[static_cast<std::size_t>(traffic)];
  }

  const Backlog& backlog(frame::TrafficClass traffic) const {
    return backlogs_[static_cast<std::size_t>(traffic)];
  }

  /// What became of the frames that the device was offered.
  struct Offer {
    unsigned offered = 0;
    unsigned sent = 0;
  };

  std::uint16_t queue_of(frame::TrafficClass traffic) const {
    return queues_.queues[static_cast<std::size_t>(traffic)];
  }

  bool is_empty() const {
    return waiting(frame::TrafficClass::ring) == 0 && waiting(frame::TrafficClass::other) == 0;
  }

  unsigned flush_by_turns(frame::FrameCounters& counters, frame::PortCounters& port);

  /// While one class alone waits, there is nothing to decide.
  template <frame::TrafficClass kTraffic>
  unsigned flush_alone(frame::FrameCounters& counters, frame::PortCounters& port) {
    return waiting(kTraffic) == 0 ? 0 : tx_burst_all_of<kTraffic>(counters, port);
  }

  template <frame::TrafficClass kTraffic>
  unsigned tx_burst_all_of(frame::FrameCounters& counters, frame::PortCounters& port);

  bool both_wait() const {
    return waiting(frame::TrafficClass::ring) != 0 && waiting(frame::TrafficClass::other) != 0;
  }

  Offer offer_both(frame::FrameCounters& counters, frame::PortCounters& port);
  void depart(frame::TrafficClass traffic, unsigned frames, frame::FrameCounters& counters,
              frame::PortCounters& port);
  void empty(frame::TrafficClass traffic, DropReason reason, frame::FrameCounters& counters,
             frame::PortCounters& port);
  Plan make_plan() const;
  Taken tx_burst_to_one_queue(const Plan& plan) const;
  Taken tx_burst_to_two_queues(Plan& plan) const;
  unsigned count_departures(const Plan& plan, Taken taken, frame::FrameCounters& counters,
                            frame::PortCounters& port);
  void depart(frame::TrafficClass traffic, frame::FrameCounters& counters,
              frame::PortCounters& port);

  TxQueues queues_;
  std::array<Backlog, frame::kTrafficClasses> backlogs_;
  TxArbiter arbiter_;
};

} // namespace weir::lcore
