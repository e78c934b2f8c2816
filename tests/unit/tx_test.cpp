// SPDX-License-Identifier: BSD-3-Clause

/// What leaves a port, and in which order: TxPort over a device whose wires are rte_rings
/// (net_ring). The expected shares are those of TxArbiter's description, computed here by hand.

#include "frame/frame.hpp"
#include "lcore/mbuf_frame.hpp"
#include "lcore/tx_port.hpp"
#include "network/egress_queue.hpp"
#include "network/packet_pool.hpp"

#include <gtest/gtest.h>
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace weir::lcore {
namespace {

using frame::TrafficClass;

constexpr std::uint32_t kWireOverhead = 24; // preamble, FCS, gap
constexpr unsigned kQueues = 2;
constexpr unsigned kMbufs = 16384;

// The simulated network's queues must be as long as those that ship.
using Simulated = network::EgressQueue<network::Packet>;
static_assert(Simulated::kRingBacklog == kTxBacklogs[static_cast<std::size_t>(TrafficClass::ring)]);
static_assert(Simulated::kOtherBacklog ==
              kTxBacklogs[static_cast<std::size_t>(TrafficClass::other)]);

/// EAL without hugepages, once for the program.
struct Eal {
  Eal() {
    std::vector<std::string> arguments{
        "tx_test",        "--no-huge",       "-m", "256", "--no-pci", "--no-shconf",
        "--no-telemetry", "--log-level=*:4", "-l", "0"};
    std::vector<char*> argv;
    for (std::string& argument : arguments) {
      argv.push_back(argument.data());
    }
    if (rte_eal_init(static_cast<int>(argv.size()), argv.data()) < 0) {
      throw std::runtime_error("EAL does not start");
    }
    pool = rte_pktmbuf_pool_create("tx_test", kMbufs - 1, 0, kFrameBytesInMbuf,
                                   RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
  }

  rte_mempool* pool = nullptr;
};

rte_mempool* pool() {
  static const Eal eal;
  return eal.pool;
}

/// A frame received from a wire.
struct Seen {
  TrafficClass traffic{};
  std::uint32_t number = 0;
  std::uint32_t bytes = 0;
  bool operator==(const Seen&) const = default;
};

/// A device with two transmit queues with this many places each, and a TxPort on one or on both.
class Wire {
 public:
  Wire(unsigned places, std::array<std::uint16_t, kQueues> queues) {
    pool(); // EAL is up
    static unsigned made = 0;
    const std::string name = "tx" + std::to_string(made++);
    for (unsigned queue = 0; queue < kQueues; ++queue) {
      const std::string ring = name + "_" + std::to_string(queue);
      rings_[queue] = rte_ring_create(ring.c_str(), places, SOCKET_ID_ANY, RING_F_EXACT_SZ);
    }
    receive_ = rte_ring_create((name + "_rx").c_str(), 2, SOCKET_ID_ANY, 0);
    const int device =
        rte_eth_from_rings(name.c_str(), &receive_, 1, rings_.data(), kQueues, SOCKET_ID_ANY);
    EXPECT_GE(device, 0);
    device_ = static_cast<std::uint16_t>(device);
    start();
    port_.emplace(TxQueues{device_, queues});
  }

  ~Wire() {
    port_->discard(counters, port_counters);
    for (unsigned queue = 0; queue < kQueues; ++queue) {
      take(queue, kMbufs);
    }
    rte_eth_dev_stop(device_);
    rte_eth_dev_close(device_);
    for (rte_ring* ring : rings_) {
      rte_ring_free(ring);
    }
    rte_ring_free(receive_);
  }

  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  bool enqueue(TrafficClass traffic, std::uint32_t bytes,
               frame::Departure departure = frame::Departure::forwarded) {
    rte_mbuf* mbuf = next(traffic, bytes);
    const bool is_taken = port_->enqueue(mbuf, bytes, departure, traffic);
    if (!is_taken) {
      rte_pktmbuf_free(mbuf);
    }
    return is_taken;
  }

  /// Passes frames of 100, 101, … bytes. Returns how many were taken.
  std::size_t tx_burst(unsigned frames) {
    std::vector<rte_mbuf*> mbufs;
    std::uint64_t bytes = 0;
    for (unsigned i = 0; i < frames; ++i) {
      mbufs.push_back(next(TrafficClass::other, 100 + i));
      bytes += 100 + i;
    }
    const std::size_t taken = port_->tx_burst(mbufs, bytes, counters, port_counters);
    for (std::size_t i = taken; i < mbufs.size(); ++i) {
      rte_pktmbuf_free(mbufs[i]);
    }
    return taken;
  }

  /// Passes one frame if it may. Returns whether it was taken.
  bool tx_burst(TrafficClass traffic, std::uint32_t bytes) {
    rte_mbuf* mbuf = next(traffic, bytes);
    const bool is_taken = port_->may_tx_burst() && port_->tx_burst(mbuf, traffic);
    if (!is_taken) {
      rte_pktmbuf_free(mbuf);
    }
    return is_taken;
  }

  unsigned flush() { return port_->flush(counters, port_counters); }

  /// The first frames that have left by a queue.
  std::vector<Seen> take(unsigned queue, unsigned most) {
    std::vector<Seen> seen;
    void* taken = nullptr;
    while (seen.size() < most && rte_ring_dequeue(rings_[queue], &taken) == 0) {
      auto* mbuf = static_cast<rte_mbuf*>(taken);
      seen.push_back({static_cast<TrafficClass>(mbuf->port), mbuf->hash.usr, mbuf->pkt_len});
      rte_pktmbuf_free(mbuf);
    }
    return seen;
  }

  TxPort& port() { return *port_; }

  frame::FrameCounters counters;
  frame::PortCounters port_counters;

 private:
  rte_mbuf* next(TrafficClass traffic, std::uint32_t bytes) {
    rte_mbuf* mbuf = rte_pktmbuf_alloc(pool());
    mbuf->pkt_len = mbuf->data_len = static_cast<std::uint16_t>(bytes);
    mbuf->port = static_cast<std::uint16_t>(traffic); // only take() reads these
    mbuf->hash.usr = next_number_[static_cast<std::size_t>(traffic)]++;
    return mbuf;
  }

  void start() const {
    const rte_eth_conf conf{};
    ASSERT_EQ(rte_eth_dev_configure(device_, 1, kQueues, &conf), 0);
    ASSERT_EQ(rte_eth_rx_queue_setup(device_, 0, 64, 0, nullptr, pool()), 0);
    for (std::uint16_t queue = 0; queue < kQueues; ++queue) {
      ASSERT_EQ(rte_eth_tx_queue_setup(device_, queue, 64, 0, nullptr), 0);
    }
    ASSERT_EQ(rte_eth_dev_start(device_), 0);
  }

  std::array<rte_ring*, kQueues> rings_{};
  rte_ring* receive_ = nullptr;
  std::uint16_t device_ = 0;
  std::array<std::uint32_t, frame::kTrafficClasses> next_number_{};
  std::optional<TxPort> port_;
};

constexpr std::array<std::uint16_t, kQueues> kOneQueue{0, 0};
constexpr std::array<std::uint16_t, kQueues> kTwoQueues{0, 1};

/// Bytes on the wire, by class.
std::array<std::uint64_t, frame::kTrafficClasses> on_wire(const std::vector<Seen>& frames) {
  std::array<std::uint64_t, frame::kTrafficClasses> bytes{};
  for (const Seen& frame : frames) {
    bytes[static_cast<std::size_t>(frame.traffic)] += frame.bytes + kWireOverhead;
  }
  return bytes;
}

void expect_in_order(const std::vector<Seen>& frames) {
  std::array<std::uint32_t, frame::kTrafficClasses> due{};
  for (const Seen& frame : frames) {
    EXPECT_EQ(frame.number, due[static_cast<std::size_t>(frame.traffic)]++);
  }
}

TEST(TxPort, AResultDoesNotWaitForBulkThatCameBefore) {
  Wire wire(16, kOneQueue);
  for (unsigned i = 0; i < 100; ++i) {
    EXPECT_TRUE(wire.enqueue(TrafficClass::other, 1500));
  }
  EXPECT_EQ(wire.flush(), 16u); // the device is full
  EXPECT_TRUE(wire.enqueue(TrafficClass::ring, 1100, frame::Departure::consumed));
  EXPECT_EQ(wire.take(0, 16).size(), 16u);
  EXPECT_EQ(wire.flush(), 16u);
  const auto next = wire.take(0, 1);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0], (Seen{TrafficClass::ring, 0, 1100}));
  EXPECT_EQ(wire.counters.consumed, 1u);
}

TEST(TxPort, WhileBothWaitTheOtherClassGetsAnEighth) {
  for (const auto& [ring_bytes, other_bytes] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{
           {1100, 1100}, {64, 1500}, {1500, 64}, {4180, 1500}}) {
    SCOPED_TRACE(std::to_string(ring_bytes) + " and " + std::to_string(other_bytes));
    Wire wire(8, kOneQueue);
    std::vector<Seen> seen;
    while (seen.size() < 4000) {
      while (wire.enqueue(TrafficClass::ring, ring_bytes)) {
      }
      while (wire.enqueue(TrafficClass::other, other_bytes)) {
      }
      wire.flush();
      const auto left = wire.take(0, 3); // a slow link: the device is mostly full
      seen.insert(seen.end(), left.begin(), left.end());
    }
    const auto bytes = on_wire(seen);
    const double share = static_cast<double>(bytes[1]) / static_cast<double>(bytes[0] + bytes[1]);
    // One frame more or less of each class, over so many.
    const double slack = 2.0 * (std::max(ring_bytes, other_bytes) + kWireOverhead) /
                         static_cast<double>(bytes[0] + bytes[1]);
    EXPECT_NEAR(share, 1.0 / 8, slack);
  }
}

TEST(TxPort, EachClassKeepsItsOrder) {
  for (const auto& queues : {kOneQueue, kTwoQueues}) {
    Wire wire(7, queues);
    std::vector<Seen> seen;
    for (unsigned i = 0; i < 1000; ++i) {
      wire.enqueue(i % 3 == 0 ? TrafficClass::other : TrafficClass::ring, 100 + i);
      wire.flush();
      for (unsigned queue = 0; queue < kQueues; ++queue) {
        const auto left = wire.take(queue, 1 + i % 2);
        seen.insert(seen.end(), left.begin(), left.end());
      }
    }
    EXPECT_GT(seen.size(), 900u);
    expect_in_order(seen);
  }
}

TEST(TxPort, AloneEachClassHasTheWholeLink) {
  for (const TrafficClass traffic : {TrafficClass::ring, TrafficClass::other}) {
    Wire wire(512, kOneQueue);
    for (unsigned i = 0; i < 300; ++i) {
      EXPECT_TRUE(wire.enqueue(traffic, 1500));
    }
    EXPECT_EQ(wire.flush(), 300u);
    EXPECT_EQ(wire.port_counters.sent(traffic).packets, 300u);
    EXPECT_EQ(wire.port_counters.sent(traffic).bytes, 300u * 1500);
    expect_in_order(wire.take(0, 512));
  }
}

/// However few of one class wait beside many of the other.
TEST(TxPort, SendsAllThatTheDeviceTakes) {
  for (const auto& [ring, other] : {std::pair{200U, 1U}, {1U, 200U}, {150U, 150U}}) {
    Wire wire(512, kOneQueue);
    for (unsigned i = 0; i < ring; ++i) {
      EXPECT_TRUE(wire.enqueue(TrafficClass::ring, 1500));
    }
    for (unsigned i = 0; i < other; ++i) {
      EXPECT_TRUE(wire.enqueue(TrafficClass::other, 64));
    }
    EXPECT_EQ(wire.flush(), ring + other);
    EXPECT_EQ(wire.port().frames_waiting(), 0u);
    expect_in_order(wire.take(0, 512));
  }
}

TEST(TxPort, WhatIsNotWantedIsNotSavedUp) {
  Wire wire(1, kOneQueue);
  EXPECT_TRUE(wire.enqueue(TrafficClass::other, 64));
  for (unsigned i = 0; i < 500; ++i) { // the other class waits for some time, has its turn and ends
    EXPECT_TRUE(wire.enqueue(TrafficClass::ring, 1500));
  }
  for (unsigned i = 0; i < 400; ++i) {
    wire.flush();
    wire.take(0, 1);
  }
  EXPECT_EQ(wire.port().waiting(TrafficClass::other), 0u);
  for (unsigned i = 0; i < 10; ++i) {
    EXPECT_TRUE(wire.enqueue(TrafficClass::other, 1500));
  }
  for (unsigned i = 0; i < 6; ++i) { // seven of the same length must go before
    wire.flush();
    EXPECT_EQ(wire.take(0, 1).at(0).traffic, TrafficClass::ring) << i;
  }
}

TEST(TxPort, BulkTakesNoPlaceFromResults) {
  Wire wire(1, kOneQueue);
  unsigned bulk = 0;
  while (wire.enqueue(TrafficClass::other, 1500)) {
    ++bulk;
  }
  EXPECT_EQ(bulk, kTxBacklogs[1]);
  unsigned results = 0;
  while (wire.enqueue(TrafficClass::ring, 1100, frame::Departure::consumed)) {
    ++results;
  }
  EXPECT_EQ(results, kTxBacklogs[0]);
  EXPECT_EQ(wire.port().frames_waiting(), bulk + results);
  wire.port().discard(wire.counters, wire.port_counters);
  EXPECT_EQ(wire.counters.dropped[static_cast<std::size_t>(DropReason::tx_backlog_full)], bulk);
  EXPECT_EQ(wire.counters.dropped[static_cast<std::size_t>(DropReason::ring_tx_backlog_full)],
            results);
  EXPECT_EQ(wire.port_counters.sent(TrafficClass::ring).dropped, results);
  EXPECT_EQ(wire.port_counters.sent(TrafficClass::other).dropped, bulk);
  EXPECT_EQ(wire.port().frames_waiting(), 0u);
}

TEST(TxPort, AClosedOneDropsWhatWaitsAndTakesNothing) {
  Wire wire(1, kOneQueue);
  EXPECT_FALSE(wire.port().is_closed());
  EXPECT_EQ(wire.port().why_refused(TrafficClass::ring), DropReason::ring_tx_backlog_full);
  for (const TrafficClass traffic : {TrafficClass::ring, TrafficClass::other}) {
    ASSERT_TRUE(wire.enqueue(traffic, 100));
  }
  ASSERT_TRUE(wire.enqueue(TrafficClass::other, 100, frame::Departure::copy));
  wire.port().close(wire.counters, wire.port_counters);
  EXPECT_TRUE(wire.port().is_closed());
  EXPECT_EQ(wire.counters.dropped[static_cast<std::size_t>(DropReason::port_closed)], 2u);
  EXPECT_EQ(wire.counters.copies_dropped, 1u);
  EXPECT_EQ(wire.port().frames_waiting(), 0u);
  for (const TrafficClass traffic : {TrafficClass::ring, TrafficClass::other}) {
    EXPECT_FALSE(wire.enqueue(traffic, 100));
    EXPECT_EQ(wire.port().why_refused(traffic), DropReason::port_closed);
  }
  EXPECT_EQ(wire.flush(), 0u);
  EXPECT_EQ(rte_mempool_in_use_count(pool()), 0u);
}

TEST(TxPort, PassesWhatTheDeviceTakes) {
  for (const auto& queues : {kOneQueue, kTwoQueues}) {
    Wire wire(4, queues);
    EXPECT_EQ(wire.tx_burst(6), 4u);
    EXPECT_EQ(wire.counters.forwarded, 4u);
    EXPECT_EQ(wire.port_counters.sent(TrafficClass::other).packets, 4u);
    EXPECT_EQ(wire.port_counters.sent(TrafficClass::other).bytes, 100u + 101 + 102 + 103);
    const auto seen = wire.take(queues[1], 8);
    EXPECT_EQ(seen.size(), 4u) << "by the queue of its class";
    expect_in_order(seen);
  }
}

TEST(TxPort, PassesOneFrameByTheQueueOfItsClass) {
  Wire wire(2, kTwoQueues);
  EXPECT_TRUE(wire.tx_burst(TrafficClass::ring, 1100));
  EXPECT_TRUE(wire.tx_burst(TrafficClass::other, 64));
  EXPECT_TRUE(wire.tx_burst(TrafficClass::ring, 70));
  EXPECT_FALSE(wire.tx_burst(TrafficClass::ring, 80)) << "there is no place";
  EXPECT_EQ(wire.port().frames_waiting(), 0u);
  const std::vector<Seen> results{{TrafficClass::ring, 0, 1100}, {TrafficClass::ring, 1, 70}};
  EXPECT_EQ(wire.take(0, 8), results);
  EXPECT_EQ(wire.take(1, 8).size(), 1u);
}

TEST(TxPort, PassesNothingWhileFramesWait) {
  for (const TrafficClass traffic : {TrafficClass::ring, TrafficClass::other}) {
    Wire wire(16, kOneQueue);
    ASSERT_TRUE(wire.enqueue(traffic, 64));
    EXPECT_EQ(wire.tx_burst(8), 0u);
    EXPECT_FALSE(wire.tx_burst(TrafficClass::ring, 64));
    EXPECT_EQ(wire.flush(), 1u);
    EXPECT_EQ(wire.tx_burst(8), 8u);
  }
}

TEST(TxPort, AClosedOnePassesNothing) {
  Wire wire(16, kOneQueue);
  wire.port().close(wire.counters, wire.port_counters);
  EXPECT_EQ(wire.tx_burst(8), 0u);
  EXPECT_FALSE(wire.tx_burst(TrafficClass::ring, 64));
  EXPECT_TRUE(wire.take(0, 8).empty());
}

TEST(TxPort, WithAQueueForEachClassTheSharesAreTheSame) {
  Wire wire(8, kTwoQueues);
  std::vector<Seen> seen;
  while (seen.size() < 4000) {
    while (wire.enqueue(TrafficClass::ring, 1100)) {
    }
    while (wire.enqueue(TrafficClass::other, 1100)) {
    }
    wire.flush();
    for (unsigned queue = 0; queue < kQueues; ++queue) { // in turn, as a NIC does it
      const auto left = wire.take(queue, 1);
      for (const Seen& frame : left) {
        EXPECT_EQ(frame.traffic, queue == 0 ? TrafficClass::ring : TrafficClass::other);
      }
      seen.insert(seen.end(), left.begin(), left.end());
    }
  }
  const auto bytes = on_wire(seen);
  const double share = static_cast<double>(bytes[1]) / static_cast<double>(bytes[0] + bytes[1]);
  const double queued = 8.0 / static_cast<double>(seen.size()); // what the device took at first
  EXPECT_NEAR(share, 1.0 / 8, 2 * queued);
}

/// docs/protocol.md I6: a copy of a flooded frame is none of the frames that wait.
TEST(TxPort, CountsCopiesAndResultsAsSuch) {
  Wire wire(64, {0, 0});
  wire.enqueue(TrafficClass::other, 100, frame::Departure::forwarded);
  wire.enqueue(TrafficClass::other, 200, frame::Departure::copy);
  wire.enqueue(TrafficClass::other, 300, frame::Departure::forwarded);
  wire.enqueue(TrafficClass::other, 400, frame::Departure::consumed);
  EXPECT_EQ(wire.port().frames_waiting(), 3U);
  EXPECT_EQ(wire.flush(), 4U);
  EXPECT_EQ(wire.port().frames_waiting(), 0U);
  EXPECT_EQ(wire.counters.forwarded, 2U);
  EXPECT_EQ(wire.counters.consumed, 1U);
  EXPECT_EQ(wire.counters.copies, 1U);
  EXPECT_EQ(wire.port_counters.sent(TrafficClass::other).packets, 4U);
  EXPECT_EQ(wire.port_counters.sent(TrafficClass::other).bytes, 1000U);
}

/// While the device takes a part of what waits, over the end of the backlog's memory.
TEST(TxPort, CountsWhatHasLeftOfALongBacklog) {
  static constexpr std::array departures{frame::Departure::consumed, frame::Departure::copy,
                                         frame::Departure::forwarded};
  constexpr std::uint32_t places = 5; // of the device
  constexpr std::uint32_t pushes = 12'000;
  static_assert(pushes > 2 * kTxBacklogs[0]);
  Wire wire(places, kOneQueue);
  std::array<std::uint64_t, departures.size()> waiting{};
  std::array<std::uint64_t, departures.size()> left{};
  std::uint64_t bytes = 0;
  const auto kind_of = [](std::uint32_t number) { return number % 7 % departures.size(); };
  const auto expect_counts_after_a_flush = [&] {
    wire.flush();
    for (const Seen& seen : wire.take(0, places)) {
      --waiting[kind_of(seen.number)];
      ++left[kind_of(seen.number)];
      bytes += seen.bytes;
    }
    ASSERT_EQ(wire.counters.consumed, left[0]);
    ASSERT_EQ(wire.counters.copies, left[1]);
    ASSERT_EQ(wire.counters.forwarded, left[2]);
    ASSERT_EQ(wire.port_counters.sent(TrafficClass::ring).bytes, bytes);
    ASSERT_EQ(wire.port().frames_waiting(), waiting[0] + waiting[2]);
  };
  for (std::uint32_t number = 0; number < pushes; ++number) {
    ASSERT_TRUE(wire.enqueue(TrafficClass::ring, 100 + number % 701, departures[kind_of(number)]));
    ++waiting[kind_of(number)];
    if (number % (places + 1) == places) { // it grows by one frame each time
      expect_counts_after_a_flush();
    }
  }
  EXPECT_GT(wire.port().waiting(TrafficClass::ring), kTxBacklogs[0] / 4);
  while (wire.port().waiting(TrafficClass::ring) != 0) {
    expect_counts_after_a_flush();
  }
  EXPECT_EQ(left[0] + left[1] + left[2], pushes);
}

} // namespace
} // namespace weir::lcore
