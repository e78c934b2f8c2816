// SPDX-License-Identifier: BSD-3-Clause

/// Two jobs on one lcore with more frames than it serves; and traffic of no ring. Its wires are
/// rte_rings (net_ring), short ones: who finds them full has lost his frame, as at a NIC.

#include "frame/frame.hpp"
#include "lcore/lcore.hpp"
#include "lcore/mbuf_frame.hpp"
#include "ring/current_rings.hpp"
#include "stage/snapshot.hpp"
#include "support/frame_builder.hpp"
#include "support/ring_job.hpp"

#include <gtest/gtest.h>
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace weir::lcore {
namespace {

using test::Built;
using test::Bytes;
using test::JobSpec;
using test::kSession;
using test::RingJob;

constexpr std::uint16_t kPorts = 2; // of jobs
constexpr std::uint16_t kWires = 3;
constexpr unsigned kPlaces = 256; // of a wire
constexpr std::uint32_t kRoom = 512;
constexpr std::uint32_t kMaxFrame = 1522;
constexpr unsigned kMbufs = 8191;
constexpr std::uint16_t kVlan = 7;
constexpr std::uint64_t kStripped = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;

rte_mempool* pool() {
  static rte_mempool* const made = [] {
    std::vector<std::string> arguments{
        "lcore_lines_test", "--no-huge",       "-m", "256", "--no-pci", "--no-shconf",
        "--no-telemetry",   "--log-level=*:4", "-l", "0"};
    std::vector<char*> argv;
    for (std::string& argument : arguments) {
      argv.push_back(argument.data());
    }
    if (rte_eal_init(static_cast<int>(argv.size()), argv.data()) < 0) {
      throw std::runtime_error("EAL does not start");
    }
    return rte_pktmbuf_pool_create("lcore_lines", kMbufs, 0, kFrameBytesInMbuf,
                                   RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
  }();
  return made;
}

/// A port whose wires the test holds the other ends of.
class Wire {
 public:
  explicit Wire(const std::string& name) {
    pool(); // EAL is up
    receive_ = rte_ring_create((name + "_rx").c_str(), kPlaces, SOCKET_ID_ANY, RING_F_EXACT_SZ);
    transmit_ = rte_ring_create((name + "_tx").c_str(), kPlaces, SOCKET_ID_ANY, RING_F_EXACT_SZ);
    device_ = static_cast<std::uint16_t>(
        rte_eth_from_rings(name.c_str(), &receive_, 1, &transmit_, 1, SOCKET_ID_ANY));
    const rte_eth_conf conf{};
    rte_eth_dev_configure(device_, 1, 1, &conf);
    rte_eth_rx_queue_setup(device_, 0, 64, 0, nullptr, pool());
    rte_eth_tx_queue_setup(device_, 0, 64, 0, nullptr);
    rte_eth_dev_start(device_);
  }

  ~Wire() {
    rte_eth_dev_stop(device_);
    rte_eth_dev_close(device_);
    rte_ring_free(receive_);
    rte_ring_free(transmit_);
  }

  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  std::uint16_t device() const { return device_; }

  /// False when the wire was full.
  bool put(const Built& frame, std::uint64_t flags = 0) {
    rte_mbuf* mbuf = rte_pktmbuf_alloc(pool());
    mbuf->ol_flags |= flags;
    mbuf->vlan_tci = kVlan;
    std::memcpy(rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(frame.bytes.size())),
                frame.bytes.data(), frame.bytes.size());
    const bool is_taken = rte_ring_enqueue(receive_, mbuf) == 0;
    if (!is_taken) {
      rte_pktmbuf_free(mbuf);
    }
    return is_taken;
  }

  /// Takes frames that have been sent.
  std::vector<Bytes> take(std::size_t most) {
    std::vector<Bytes> frames;
    void* taken = nullptr;
    while (frames.size() < most && rte_ring_dequeue(transmit_, &taken) == 0) {
      auto* mbuf = static_cast<rte_mbuf*>(taken);
      const auto* bytes = rte_pktmbuf_mtod(mbuf, const std::uint8_t*);
      frames.emplace_back(bytes, bytes + mbuf->data_len);
      rte_pktmbuf_free(mbuf);
    }
    return frames;
  }

 private:
  rte_ring* receive_ = nullptr;
  rte_ring* transmit_ = nullptr;
  std::uint16_t device_ = 0;
};

/// An lcore with all roles.
class Switch {
 public:
  Switch(const std::string& name, const std::vector<ring::RingSpec>& rings)
      : rings_(ring::RingSet(rings)), claims_(conn::QueuePairClaims::most_of(*rings_), {}),
        bridge_(stations_, kWires), shared_{rings_, bridge_,
                                            std::vector<std::uint32_t>(kWires, kMaxFrame),
                                            conn::magic_rule_settings(settings().classifier)},
        lcore_(0, Idle::spin, shared_), other_(1, Idle::spin, shared_) {
    for (std::uint16_t port = 0; port < kWires; ++port) {
      wires_.emplace_back(name + std::to_string(port));
      lcore_.add_rx_queue({port, wires_[port].device(), 0});
      lcore_.add_tx_port(port, tx_queues(port));
    }
    std::vector<std::uint16_t> all;
    for (std::uint16_t ring = 0; ring < rings.size(); ++ring) {
      all.push_back(ring);
    }
    lcore_.make_worker(all, settings());
  }

  /// Another lcore transmits by this port.
  void move_to_other_lcore(std::uint16_t port) {
    other_.add_tx_port(port, tx_queues(port));
    lcore_.reach_transmitter(other_);
    lcore_.route_port(port, other_);
  }

  bool send(const Built& frame, std::uint16_t port, std::uint64_t flags = 0) {
    return wires_[port].put(frame, flags);
  }

  std::vector<Bytes> take(std::uint16_t port, std::size_t most) { return wires_[port].take(most); }

  /// One round; what it sends stays on the wires.
  void work() {
    now_ns_ += 10'000;
    work_on();
  }

  /// One more in the same instant.
  void work_on() {
    lcore_.round(frame::Instant{now_ns_});
    other_.round(frame::Instant{now_ns_});
  }

  void round() {
    work();
    for (Wire& wire : wires_) {
      wire.take(kPlaces);
    }
  }

  void start(const RingJob& job) {
    for (std::uint16_t rank = 0; rank < job.spec().world; ++rank) {
      send(job.hello(rank), job.port_of(rank));
    }
    round();
  }

  Lcore& lcore() { return lcore_; }

  std::uint64_t contributions(std::uint16_t ring) {
    return lcore_.worker()->counters_of(ring).contributions;
  }

  std::uint64_t dropped(DropReason reason) const {
    return lcore_.counters().dropped[static_cast<std::size_t>(reason)];
  }

  bool balances() {
    frame::FrameCounters counters = lcore_.counters();
    counters += other_.counters();
    return stage::Accounting{counters, lcore_.worker()->held(), lcore_.queued() + other_.queued()}
        .balances();
  }

  /// Of a port, on both lcores.
  frame::PortCounters port_counters(std::uint16_t port) {
    frame::PortCounters counters = lcore_.port_counters(port);
    counters += other_.port_counters(port);
    return counters;
  }

 private:
  lcore::TxQueues tx_queues(std::uint16_t port) const { return {.device = wires_[port].device()}; }

  stage::Worker::Settings settings() {
    stage::Worker::Settings settings;
    settings.classifier.sessions = conn::SessionSource::counting_from(kSession);
    settings.classifier.foreign_sessions = &foreign_sessions_;
    settings.classifier.claims = &claims_;
    settings.queue_room = kRoom;
    return settings;
  }

  ring::CurrentRings rings_;
  conn::ForeignSessions foreign_sessions_{{}, stage::ways_out_by(bridge_)};
  conn::QueuePairClaims claims_;
  l2::MacTable stations_{512, 300'000};
  l2::Bridge bridge_;
  Lcore::Shared shared_;
  std::deque<Wire> wires_;
  Lcore lcore_;
  Lcore other_;
  std::uint64_t now_ns_ = 1'000'000'000;
};

RingJob flooder() {
  return RingJob({.ring = 1, .ports = kPorts});
}

RingJob victim() {
  return RingJob({.ring = 2,
                  .world = 4,
                  .window = 8,
                  .session = kSession + 1,
                  .ports = kPorts,
                  .network_id = 1});
}

/// Each round serves a burst for each of the two ports, and twice as many frames come.
/// As docs/configuration.md has it: 200 short ones take some 20 ms.
TEST(Idle, SleepsForLongerWhenNothingHasComeForLong) {
  using namespace std::chrono_literals;
  EXPECT_EQ(sleep_after(1), 0us);
  EXPECT_EQ(sleep_after(2'100), 50us);
  EXPECT_EQ(sleep_after(2'300), 200us);
  EXPECT_EQ(sleep_after(1'000'000), 200us);
}

TEST(LcoreLines, AFloodTakesNothingFromAnotherRing) {
  constexpr std::uint32_t messages = 300;
  RingJob flood = flooder();
  RingJob job = victim();
  Switch weir("flood", {flood.ring(), job.ring()});
  weir.start(flood);
  weir.start(job);
  const Built repeat = flood.message(0, 1, Bytes(200, 1)).front();
  std::uint64_t lost_repeats = 0;
  for (std::uint32_t id = 1; id <= messages; ++id) {
    for (unsigned i = 0; i < 2 * kBurst * kPorts; ++i) {
      lost_repeats += weir.send(repeat, static_cast<std::uint16_t>(i % kPorts)) ? 0 : 1;
    }
    for (std::uint16_t rank = 0; rank < job.spec().world; ++rank) {
      ASSERT_TRUE(weir.send(job.message(rank, id, Bytes(200, 1)).front(), job.port_of(rank)))
          << "no place on the wire for message " << id;
    }
    weir.round();
    ASSERT_TRUE(weir.balances());
  }
  weir.round();
  EXPECT_EQ(weir.contributions(1), 4U + 4 * messages) << "with the hellos";
  EXPECT_EQ(lost_repeats, 0U) << "the flood was to be dropped by name";
  EXPECT_GT(weir.dropped(DropReason::ring_queue_full), 5000U);
  EXPECT_GT(weir.lcore().queued(), 0U);
  weir.lcore().discard_queued();
  EXPECT_EQ(weir.lcore().worker()->queue().lines().size(), 0U);
  EXPECT_TRUE(weir.balances());
}

/// Fewer frames of the flood wait than a wire has places for, so nothing is lost where they arrive.
/// All the same the other ring's frames behind them do not wait until the flood has been served.
TEST(LcoreLines, AFloodThatFitsTheWireTakesNoTurnsFromAnotherRing) {
  constexpr unsigned waiting = 3 * kBurst;
  RingJob flood = flooder();
  RingJob job = victim();
  Switch weir("turns", {flood.ring(), job.ring()});
  weir.start(flood);
  weir.start(job);
  const std::uint64_t hellos = weir.contributions(1);
  const Built repeat = flood.message(0, 1, Bytes(200, 1)).front();
  for (unsigned i = 0; i < waiting * kPorts; ++i) {
    ASSERT_TRUE(weir.send(repeat, static_cast<std::uint16_t>(i % kPorts)));
  }
  for (std::uint16_t rank = 0; rank < job.spec().world; ++rank) {
    ASSERT_TRUE(weir.send(job.message(rank, 1, Bytes(200, 1)).front(), job.port_of(rank)));
  }
  weir.round();
  EXPECT_EQ(weir.contributions(1) - hellos, job.spec().world);
  EXPECT_EQ(weir.dropped(DropReason::ring_queue_full), 0U);
  EXPECT_GT(weir.lcore().queued(), 0U) << "the flood was to be more than a round serves";
  weir.lcore().discard_queued();
}

TEST(LcoreLines, ALoneRingNeverWaits) {
  RingJob flood = flooder();
  Switch weir("lone", {flood.ring()});
  weir.start(flood);
  const Built repeat = flood.message(0, 1, Bytes(200, 1)).front();
  for (unsigned i = 0; i < 6 * kBurst; ++i) {
    weir.send(repeat, 0);
  }
  for (unsigned rounds = 0; rounds < 6; ++rounds) {
    weir.round();
    EXPECT_EQ(weir.lcore().worker()->queue().lines().size(), 0U);
  }
  EXPECT_EQ(weir.dropped(DropReason::repeat_held), 6U * kBurst - 1);
}

/// Plain traffic from one port's station to another's.
class PlainStream {
 public:
  explicit PlainStream(std::uint16_t from = 0, std::uint16_t to = 1)
      : source_(station(from)), destination_(station(to)) {}

  /// Frames differ in their number and length.
  Built next() {
    test::FrameSpec spec;
    spec.source_mac = source_;
    spec.destination_mac = destination_;
    spec.source = test::ip("192.0.2.1");
    spec.destination = test::ip("192.0.2.2");
    spec.udp_destination = 9;
    spec.payload.assign(100 + number_ % 7 * 4, 0);
    test::put32(spec.payload, 0, number_++);
    sent_.push_back(test::build(spec).bytes);
    return test::build(spec);
  }

  /// Teaches the switch where the destination is.
  Built greeting() const {
    test::FrameSpec spec;
    spec.source_mac = spec.destination_mac = destination_;
    return test::build(spec);
  }

  const std::vector<Bytes>& sent() const { return sent_; }

  std::uint64_t bytes() const {
    std::uint64_t bytes = 0;
    for (const Bytes& frame : sent_) {
      bytes += frame.size();
    }
    return bytes;
  }

 private:
  static wire::MacAddress station(std::uint16_t port) {
    return {{0x02, 0, 0, 0, 1, static_cast<std::uint8_t>(port)}};
  }

  wire::MacAddress source_;
  wire::MacAddress destination_;
  std::uint32_t number_ = 0;
  std::vector<Bytes> sent_;
};

/// First the wire has room for a burst, then for a part of one, then for less than comes.
TEST(LcoreLines, OtherTrafficKeepsItsOrderPastAFullWire) {
  constexpr unsigned each_round = 24;
  Switch weir("plain", {});
  PlainStream stream;
  std::vector<Bytes> arrived;
  const auto take = [&](std::size_t most) {
    const std::vector<Bytes> some = weir.take(1, most);
    arrived.insert(arrived.end(), some.begin(), some.end());
    return some.size();
  };
  weir.send(stream.greeting(), 1);
  weir.round();
  for (unsigned round = 0; round < 2 * kPlaces / each_round; ++round) {
    for (unsigned i = 0; i < each_round; ++i) {
      ASSERT_TRUE(weir.send(stream.next(), 0));
    }
    weir.work();
    ASSERT_TRUE(weir.balances());
    if (round * each_round > kPlaces) {
      take(each_round / 2);
    }
  }
  while (take(kPlaces) != 0) {
    weir.work();
  }
  EXPECT_EQ(arrived, stream.sent());
  EXPECT_EQ(weir.lcore().port_counters(1).sent(frame::TrafficClass::other).bytes, stream.bytes());
  EXPECT_TRUE(weir.balances());
}

TEST(LcoreLines, CountsOtherTrafficByPort) {
  Switch weir("counted", {});
  PlainStream stream;
  weir.send(stream.greeting(), 1);
  weir.round();
  const frame::PortCounters before = weir.lcore().port_counters(0);
  for (unsigned i = 0; i < 3 * kBurst / 2; ++i) {
    weir.send(stream.next(), 0);
  }
  weir.work();
  weir.work();
  frame::PortCounters in = weir.lcore().port_counters(0);
  in -= before;
  const auto& out = weir.lcore().port_counters(1).sent(frame::TrafficClass::other);
  EXPECT_EQ(in.rx_packets, stream.sent().size());
  EXPECT_EQ(in.rx_bytes, stream.bytes());
  EXPECT_EQ(out.packets, stream.sent().size());
  EXPECT_EQ(out.bytes, stream.bytes());
  EXPECT_EQ(weir.lcore().counters().forwarded, stream.sent().size());
  EXPECT_TRUE(weir.balances());
}

/// What neither the wire nor the backlog has room for is dropped by name.
TEST(LcoreLines, OtherTrafficThatFindsNoRoomIsDropped) {
  Switch weir("full", {});
  PlainStream stream;
  weir.send(stream.greeting(), 1);
  weir.round();
  constexpr auto other = static_cast<std::size_t>(frame::TrafficClass::other);
  const std::size_t room = kPlaces + kTxBacklogs[other];
  for (std::size_t i = 0; i < room + 100; ++i) {
    weir.send(stream.next(), 0);
    if (i % kBurst == 0) {
      weir.work();
    }
  }
  for (unsigned rounds = 0; rounds < 8; ++rounds) {
    weir.work();
  }
  EXPECT_EQ(weir.dropped(DropReason::tx_backlog_full), 100U);
  EXPECT_EQ(weir.lcore().port_counters(1).sent(frame::TrafficClass::other).dropped, 100U);
  EXPECT_TRUE(weir.balances());
  weir.lcore().discard_queued();
}

/// Frames of port 0's station of all kinds, and what each port must get of them.
class MixedTraffic {
 public:
  explicit MixedTraffic(unsigned seed) : random_(seed) {}

  struct Sent {
    Built frame;
    std::uint64_t flags = 0;
  };

  /// Where frames to a station go: to its port, or to all others.
  Sent next() {
    FrameSpec spec;
    spec.source_mac = station(0);
    const std::uint16_t to = 1 + random_() % 3;
    spec.destination_mac = station(to);
    spec.source = test::ip("192.0.2.1");
    spec.destination = test::ip("192.0.2.2");
    spec.payload.assign(100 + random_() % 7 * 4, static_cast<std::uint8_t>(number_++));
    Sent sent;
    switch (random_() % 8) {
    case 0: // RDMA
      break;
    case 1:
      spec.tags = {{0x8100, 5}};
      break;
    case 2:
      sent.flags = kStripped;
      break;
    case 3:
      spec.ip_options.assign(4, 0x01);
      break;
    case 4:
      spec.payload.assign(kMaxFrame, 0);
      break;
    default:
      spec.udp_destination = 9;
    }
    sent.frame = test::build(spec);
    note(sent, to);
    return sent;
  }

  static Built greeting(std::uint16_t port) {
    FrameSpec spec;
    spec.source_mac = spec.destination_mac = station(port);
    return test::build(spec);
  }

  const std::vector<Bytes>& expected(std::uint16_t port) const { return expected_[port]; }

  std::uint64_t sent_bytes = 0;
  unsigned too_long = 0;

 private:
  using FrameSpec = test::FrameSpec;

  static wire::MacAddress station(std::uint16_t number) {
    return {{0x02, 0, 0, 0, 1, static_cast<std::uint8_t>(number)}};
  }

  void note(const Sent& sent, std::uint16_t to) {
    Bytes bytes = sent.frame.bytes;
    if (sent.flags != 0) { // as it was on the link
      bytes.insert(bytes.begin() + 12, {0x81, 0x00, 0x00, kVlan});
    }
    sent_bytes += bytes.size();
    if (bytes.size() > kMaxFrame) {
      ++too_long;
      return;
    }
    for (const std::uint16_t port : {1, 2}) {
      if (to == port || to == 3) { // nobody knows station 3
        expected_[port].push_back(bytes);
      }
    }
  }

  std::mt19937 random_;
  std::uint32_t number_ = 0;
  std::array<std::vector<Bytes>, kWires> expected_;
};

/// Whatever way a frame takes, those of a station keep their order, and all are counted.
TEST(LcoreLines, FramesOfAllKindsKeepTheirOrder) {
  for (const bool has_other_lcore : {false, true}) {
    Switch weir(has_other_lcore ? "mixed2_" : "mixed1_", {});
    if (has_other_lcore) {
      weir.move_to_other_lcore(2);
    }
    MixedTraffic traffic(7);
    std::array<std::vector<Bytes>, kWires> arrived;
    for (const std::uint16_t port : {1, 2}) {
      weir.send(MixedTraffic::greeting(port), port);
    }
    weir.round();
    const frame::PortCounters before = weir.port_counters(0);
    constexpr unsigned bursts = 300;
    unsigned sent = 0;
    std::mt19937 sizes(11);
    for (unsigned burst = 0; burst < bursts; ++burst) {
      for (unsigned left = sizes() % kBurst; left != 0; --left, ++sent) {
        const MixedTraffic::Sent next = traffic.next();
        ASSERT_TRUE(weir.send(next.frame, 0, next.flags));
      }
      weir.work();
      for (std::uint16_t port = 0; port < kWires; ++port) {
        const auto some = weir.take(port, kPlaces);
        arrived[port].insert(arrived[port].end(), some.begin(), some.end());
      }
    }
    frame::PortCounters in = weir.port_counters(0);
    in -= before;
    EXPECT_EQ(in.rx_packets, sent);
    EXPECT_EQ(in.rx_bytes, traffic.sent_bytes);
    EXPECT_TRUE(arrived[0].empty());
    EXPECT_EQ(weir.dropped(DropReason::too_long), traffic.too_long);
    EXPECT_TRUE(weir.balances());
    for (const std::uint16_t port : {1, 2}) {
      EXPECT_EQ(arrived[port], traffic.expected(port));
      EXPECT_EQ(weir.port_counters(port).sent(frame::TrafficClass::other).packets,
                traffic.expected(port).size());
    }
  }
}

/// docs/protocol.md, I12: the last contribution, and behind it plain frames to the same port. Later
/// messages are as the first ones were.
TEST(LcoreLines, ResultsOfABurstLeaveBeforeItsOtherTraffic) {
  constexpr std::uint32_t messages = 6;
  RingJob job = flooder();
  Switch weir("first", {job.ring()});
  weir.start(job);
  const std::uint16_t last = job.spec().world - 1;
  const std::uint16_t from = job.port_of(last);
  const std::uint16_t to = job.port_of(0);
  ASSERT_NE(from, to);
  weir.send(PlainStream(from, to).greeting(), to);
  for (std::uint32_t id = 1; id <= messages; ++id) {
    PlainStream stream(from, to);
    for (std::uint16_t rank = 0; rank < last; ++rank) {
      weir.send(job.message(rank, id, Bytes(200, 1)).front(), job.port_of(rank));
    }
    weir.round();
    weir.send(job.message(last, id, Bytes(200, 1)).front(), from);
    constexpr unsigned plain = 16;
    for (unsigned i = 0; i < plain; ++i) {
      weir.send(stream.next(), from);
    }
    weir.work();
    const std::vector<Bytes> left = weir.take(to, kPlaces);
    ASSERT_GT(left.size(), plain) << id;
    EXPECT_EQ((std::vector<Bytes>{left.end() - plain, left.end()}), stream.sent()) << id;
  }
  EXPECT_NE(weir.lcore().worker()->cached_path().taken(), 0U);
}

/// Each contribution comes alone, so that its results leave at once: by the lcore whose port it is.
TEST(LcoreLines, ResultsLeaveByThePortsLcore) {
  constexpr std::uint32_t messages = 5;
  RingJob job = flooder();
  Switch weir("moved", {job.ring()});
  weir.start(job);
  const std::uint16_t moved = job.port_of(0);
  weir.move_to_other_lcore(moved);
  const auto before = weir.lcore().port_counters(moved).sent(frame::TrafficClass::ring).packets;
  std::size_t arrived = 0;
  for (std::uint32_t id = 1; id <= messages; ++id) {
    for (std::uint16_t rank = 0; rank < job.spec().world; ++rank) {
      weir.send(job.message(rank, id, Bytes(200, 1)).front(), job.port_of(rank));
      weir.work();
    }
    arrived += weir.take(moved, kPlaces).size();
  }
  std::uint16_t receivers = 0;
  for (std::uint16_t rank = 0; rank < job.spec().world; ++rank) {
    receivers += job.port_of(rank) == moved ? 1 : 0;
  }
  EXPECT_EQ(arrived, messages * receivers);
  EXPECT_EQ(weir.lcore().port_counters(moved).sent(frame::TrafficClass::ring).packets, before);
  EXPECT_TRUE(weir.balances());
}

/// Its device may be gone.
TEST(LcoreLines, NothingLeavesByAClosedPort) {
  RingJob job({.ring = 1, .world = 2 * kPorts, .ports = kPorts});
  Switch weir("closed", {job.ring()});
  weir.start(job);
  constexpr std::uint16_t closed = 0;
  weir.lcore().close_tx_port(closed);
  for (std::uint16_t rank = 0; rank < job.spec().world; ++rank) {
    weir.send(job.message(rank, 1, Bytes(200, 1)).front(), job.port_of(rank));
    weir.work_on(); // each comes alone, so that results would leave at once
  }
  EXPECT_TRUE(weir.take(closed, kPlaces).empty());
  EXPECT_EQ(weir.take(1, kPlaces).size(), 2U);
  EXPECT_EQ(weir.dropped(DropReason::port_closed), 2U);
  EXPECT_TRUE(weir.balances());
}

/// All that a job's ports got so far.
using Arrived = std::array<std::vector<Bytes>, kPorts>;

void take_all(Switch& weir, Arrived& arrived) {
  for (std::uint16_t port = 0; port < kPorts; ++port) {
    std::ranges::move(weir.take(port, kPlaces), std::back_inserter(arrived[port]));
  }
}

/// Each contribution comes alone. One switch's wires are emptied after each slot. Those of the
/// other become full, one of them amidst a slot's results: the rest waits, and leaves in order.
/// They have room again just before the last contribution: its results still leave behind those
/// that wait.
TEST(LcoreLines, ResultsThatTheDeviceDoesNotTakeAtOnceWait) {
  constexpr std::uint16_t world = 2 * kPorts; // two results a port and slot
  constexpr std::uint32_t messages = kPlaces / 2 + 8;
  RingJob job({.ring = 1, .world = world, .ports = kPorts});
  Switch emptied("emptied", {job.ring()});
  Switch filled("filled", {job.ring()});
  const std::array switches{&emptied, &filled};
  for (Switch* weir : switches) {
    weir->start(job);
    weir->send(PlainStream(0, 0).greeting(), 0);
    weir->round();
    weir->send(PlainStream(1, 0).next(), 1);
    weir->work_on();
  }
  Arrived wanted;
  Arrived arrived;
  for (std::uint32_t id = 1; id <= messages; ++id) {
    for (std::uint16_t rank = 0; rank < world; ++rank) {
      if (id == messages && rank == world - 1) {
        EXPECT_NE(filled.lcore().queued(), 0U) << "so the wires were full";
        take_all(filled, arrived);
      }
      for (Switch* weir : switches) {
        weir->send(job.message(rank, id, Bytes(200, 1)).front(), job.port_of(rank));
        weir->work_on();
      }
    }
    take_all(emptied, wanted);
  }
  take_all(filled, arrived);
  for (std::uint16_t port = 0; port < kPorts; ++port) {
    EXPECT_EQ(arrived[port].size(), 2 * messages + (port == 0 ? 1 : 0));
    EXPECT_EQ(arrived[port], wanted[port]) << port;
    const frame::PortCounters counters = filled.port_counters(port);
    const frame::PortCounters all = emptied.port_counters(port);
    const auto& sent = counters.sent(frame::TrafficClass::ring);
    EXPECT_EQ(sent.packets, all.sent(frame::TrafficClass::ring).packets);
    EXPECT_EQ(sent.bytes, all.sent(frame::TrafficClass::ring).bytes);
  }
  EXPECT_EQ(filled.lcore().counters().consumed, emptied.lcore().counters().consumed);
  EXPECT_EQ(filled.lcore().queued(), 0U);
  EXPECT_TRUE(filled.balances());
}

/// What two switches get, one in bursts and the other frame by frame: of each port, packets of two
/// ranks that take turns after a few, some of them damaged or with a tag beside the frame, and
/// plain frames between them.
class TwoRates {
 public:
  explicit TwoRates(unsigned seed) : random_(seed) {
    for (Switch* weir : {&burst_, &single_}) {
      weir->start(job_);
    }
  }

  /// A message of each rank. From what was damaged on, a rank sends again.
  void exchange(std::uint32_t id) {
    const std::array<std::vector<Packet>, kPorts> packets = turns(id);
    for (std::uint16_t port = 0; port < kPorts; ++port) {
      for (const Packet& packet : packets[port]) {
        send(packet.sent, port, packet.flags);
      }
    }
    work(id);
    for (std::uint16_t port = 0; port < kPorts; ++port) {
      std::array<bool, kRanks + 1> goes_back{}; // the last one: frames of no rank, never
      for (const Packet& packet : packets[port]) {
        goes_back[packet.rank] |= packet.is_damaged;
        if (goes_back[packet.rank]) {
          send(packet.intact, port);
        }
      }
    }
    work(id);
  }

  std::uint64_t results() { return burst_.lcore().worker()->counters_of(0).results; }

  const RingJob& job() const { return job_; }

 private:
  struct Packet {
    Built intact;
    Built sent;
    std::uint16_t rank = kRanks; // none
    std::uint64_t flags = 0;
    bool is_damaged = false;
  };

  static constexpr std::uint16_t kRanks = 4;

  std::array<std::vector<Packet>, kPorts> turns(std::uint32_t id) {
    const Bytes data(4 + random_() % 500 * 4, static_cast<std::uint8_t>(random_()));
    std::array<std::vector<Packet>, kPorts> turns;
    for (std::uint16_t port = 0; port < kPorts; ++port) {
      std::array<std::vector<Built>, 2> messages{job_.message(port, id, data),
                                                 job_.message(port + kPorts, id, data)};
      std::array<std::size_t, 2> next{};
      while (next[0] < messages[0].size() || next[1] < messages[1].size()) {
        const unsigned which = random_() % 2;
        for (unsigned run = random_() % 8; run != 0 && next[which] < messages[which].size();
             --run) {
          turns[port].push_back(packet(port + which * kPorts, messages[which][next[which]++]));
        }
        if (random_() % 8 == 0) {
          const Built plain = stream_.next();
          turns[port].push_back({plain, plain});
        }
      }
    }
    return turns;
  }

  Packet packet(std::uint16_t rank, const Built& frame) {
    Packet packet{frame, frame, rank};
    if (random_() % 32 == 0) {
      packet.is_damaged = true;
      packet.sent.bytes[random_() % frame.bytes.size()] ^= 1u << random_() % 8;
    } else if (random_() % 32 == 0) {
      packet.flags = kStripped;
    }
    return packet;
  }

  /// Classes of traffic wait for each other where many frames come at once.
  static std::vector<Bytes> sorted(std::vector<Bytes> frames) {
    std::ranges::sort(frames);
    return frames;
  }

  void send(const Built& frame, std::uint16_t port, std::uint64_t flags = 0) {
    ASSERT_TRUE(burst_.send(frame, port, flags));
    ASSERT_TRUE(single_.send(frame, port, flags));
    single_.work_on();
  }

  void work(std::uint32_t id) {
    burst_.work();
    for (unsigned rounds = 0; rounds < kPlaces / kBurst; ++rounds) {
      burst_.work_on();
    }
    single_.work();
    compare(id);
  }

  void compare(std::uint32_t id) {
    for (std::uint16_t port = 0; port < kWires; ++port) {
      ASSERT_EQ(sorted(burst_.take(port, kPlaces)), sorted(single_.take(port, kPlaces))) << id;
      ASSERT_EQ(burst_.lcore().port_counters(port).rx_bytes,
                single_.lcore().port_counters(port).rx_bytes);
    }
    ASSERT_EQ(burst_.lcore().counters().dropped, single_.lcore().counters().dropped) << id;
    ASSERT_EQ(burst_.lcore().counters().received, single_.lcore().counters().received) << id;
    ASSERT_TRUE(burst_.balances());
  }

  std::mt19937 random_;
  RingJob job_{{.world = kRanks, .max_message_bytes = 2048, .ports = kPorts}};
  PlainStream stream_{2, 0};
  Switch burst_{"burst", {job_.ring()}};
  Switch single_{"single", {job_.ring()}};
};

/// An lcore does with bursts what it does with their frames one by one.
TEST(LcoreLines, ABurstIsWhatItsFramesAre) {
  constexpr std::uint32_t messages = 300;
  TwoRates rates(3);
  for (std::uint32_t id = 1; id <= messages; ++id) {
    ASSERT_NO_FATAL_FAILURE(rates.exchange(id));
  }
  EXPECT_GT(rates.results(), std::uint64_t{messages} * rates.job().spec().world);
}

/// What lies behind the ICRC of a rank's packet does not leave with its result, by whichever lcore.
TEST(LcoreLines, ResultsLeaveWithoutTrailers) {
  RingJob job = flooder();
  Switch weir("trailers", {job.ring()});
  weir.start(job);
  weir.move_to_other_lcore(1);
  for (std::uint32_t id = 1; id <= 40; ++id) {
    const std::vector<Built> packets[2]{job.message(0, id, Bytes(700, 1)),
                                        job.message(1, id, Bytes(700, 1))};
    for (std::uint16_t rank = 0; rank < 2; ++rank) {
      for (Built packet : packets[rank]) {
        packet.bytes.resize(packet.bytes.size() + id / 4, 0x5a);
        ASSERT_TRUE(weir.send(packet, job.port_of(rank)));
      }
    }
    weir.work();
    weir.work_on();
    for (std::uint16_t rank = 0; rank < 2; ++rank) {
      std::vector<Bytes> expected;
      for (const Built& packet : packets[rank]) {
        expected.push_back(
            test::result_of(packet, Bytes(test::data_of(packet).size(), 2), kSession).bytes);
      }
      ASSERT_EQ(weir.take(job.port_of(job.successor_of(rank)), kPlaces), expected) << id;
    }
  }
}

} // namespace
} // namespace weir::lcore
