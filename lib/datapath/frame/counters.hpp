// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/frame.hpp"
#include "weir/reasons.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace weir::frame {

/// A number that one thread writes and any thread may read at any time. Both use relaxed loads and
/// stores, which are plain moves. With one writer no read-modify-write is needed, which would lock
/// the bus.
class Count {
 public:
  Count() = default;

  Count(std::uint64_t value) : value_(value) {} // NOLINT: counts are used like numbers

  Count(const Count& other) : Count(other.get()) {}

  Count& operator=(const Count& other) {
    set(other.get());
    return *this;
  }

  ~Count() = default;

  operator std::uint64_t() const { return get(); } // NOLINT: counts are used like numbers

  std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

  Count& operator+=(std::uint64_t value) {
    set(get() + value);
    return *this;
  }

  Count& operator-=(std::uint64_t value) {
    set(get() - value);
    return *this;
  }

  Count& operator++() { return *this += 1; }

 private:
  void set(std::uint64_t value) { value_.store(value, std::memory_order_relaxed); }

  std::atomic<std::uint64_t> value_{0};
};

/// Counts by powers of two: bucket b holds values of b significant bits, 2^(b-1) .. 2^b - 1.
struct Histogram {
  static constexpr std::size_t kBuckets = 48;
  std::array<std::uint64_t, kBuckets> counts{};

  /// The largest value of a bucket; the last one takes larger ones too.
  static constexpr std::uint64_t most_of(std::size_t bucket) {
    return (std::uint64_t{1} << bucket) - 1;
  }

  void add(std::uint64_t value) {
    const auto bits = static_cast<std::size_t>(std::bit_width(value));
    ++counts[bits < kBuckets ? bits : kBuckets - 1];
  }

  Histogram& operator+=(const Histogram& other) {
    for (std::size_t i = 0; i < kBuckets; ++i) {
      counts[i] += other.counts[i];
    }
    return *this;
  }
};

/// What one lcore did with frames. Only that lcore writes it. It is read on that lcore or while the
/// lcore is stopped, so plain integers are enough and every copy is consistent.
///
/// Summed over all lcores, with the frames that slots hold and that wait between stages (protocol
/// I6):
///   received + originated = forwarded + consumed + dropped + held + queued.
struct FrameCounters {
  std::uint64_t received = 0;
  std::uint64_t originated = 0;     // made by the switch: acknowledgements, NAKs, results again
  std::uint64_t forwarded = 0;      // left as they came
  std::uint64_t consumed = 0;       // left as results, or made by the switch
  std::uint64_t copies = 0;         // further copies of flooded frames that left
  std::uint64_t copies_dropped = 0; // further copies that did not leave
  std::array<std::uint64_t, kDropReasons> dropped{};
  std::array<std::uint64_t, kForeignReasons> foreign{};

  void count(DropReason reason) { ++dropped[static_cast<std::size_t>(reason)]; }

  void count(ForeignReason reason) { ++foreign[static_cast<std::size_t>(reason)]; }

  void count(Departure departure) { ++(departure == Departure::consumed ? consumed : forwarded); }

  std::uint64_t all_dropped() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t drops : dropped) {
      sum += drops;
    }
    return sum;
  }

  FrameCounters& operator+=(const FrameCounters& other);
};

/// What one lcore sent of one traffic class.
struct ClassCounters {
  Count packets;
  Count bytes;
  Count dropped; // includes copies; `show drops` does not

  ClassCounters& operator+=(const ClassCounters& other);
  ClassCounters& operator-=(const ClassCounters& other);
};

/// What one lcore moved through one port. Any thread may copy it at any time: each number is right,
/// but numbers may be from different bursts.
struct PortCounters {
  Count rx_packets;
  Count rx_bytes;
  std::array<ClassCounters, kTrafficClasses> tx; // by frame::TrafficClass

  void count_sent(TrafficClass traffic, std::uint64_t packets, std::uint64_t bytes) {
    ClassCounters& counters = tx[static_cast<std::size_t>(traffic)];
    counters.packets += packets;
    counters.bytes += bytes;
  }

  void count_dropped(TrafficClass traffic) { ++tx[static_cast<std::size_t>(traffic)].dropped; }

  const ClassCounters& sent(TrafficClass traffic) const {
    return tx[static_cast<std::size_t>(traffic)];
  }

  PortCounters& operator+=(const PortCounters& other);
  /// Leaves what was counted since `other` was copied.
  PortCounters& operator-=(const PortCounters& other);
};

/// What a worker did for one ring.
struct RingCounters {
  std::uint64_t contributions = 0; // packets stored in slots
  std::uint64_t slots_completed = 0;
  std::uint64_t results = 0;        // result packets; answers from the cache not included
  std::uint64_t cached_results = 0; // repeats answered one by one from the cache
  std::uint64_t partial_sums = 0;   // for the switch above
  std::uint64_t totals = 0;         // from the switch above
  std::uint64_t climbs = 0;         // hellos for the switch above
  std::uint64_t hellos = 0;         // hello exchanges completed
  std::uint64_t reduced_bytes = 0;  // tensor data in
  std::uint64_t by_operator = 0;    // slots that an operator of the users' own has folded
  std::uint64_t flagged = 0;        // those of them whose result has a flag
  std::uint64_t flushes = 0;        // epochs begun and resets
  std::uint64_t told = 0;           // NAKs that told a rank that its run is over
  std::array<std::uint64_t, kDropReasons> dropped{};
  Histogram slot_time_ns;  // first contribution to last
  Histogram total_time_ns; // a partial sum's departure to its total, of one sum at a time
};

} // namespace weir::frame
