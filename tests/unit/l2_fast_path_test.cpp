// SPDX-License-Identifier: BSD-3-Clause

/// The fast path beside the stages: whatever it forwards, they forward by the same port, and the
/// stations that are known afterwards are the same (docs/protocol.md I2).

#include "stage/l2_fast_path.hpp"
#include "stage/receive.hpp"
#include "support/frame_builder.hpp"
#include "support/frame_pool.hpp"
#include "support/ring_job.hpp"
#include "support/sanitized.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace weir::stage::l2_fast_path_test {
namespace {

using test::Bytes;
using test::FrameSpec;

constexpr std::uint16_t kPorts = 4;
constexpr std::uint16_t kLimit = 1000; // bytes of a frame
constexpr std::uint64_t kAging = 50;   // milliseconds
const wire::IpAddress kRegionsIp = *wire::parse_ip("10.0.0.254");
const wire::MacAddress kRegionsMac = *wire::parse_mac("02:57:45:00:00:01");

/// What became of a frame.
struct Outcome {
  l2::PortSet ports = 0;
  bool is_rings = false; // it went to a worker
  std::vector<std::uint64_t> drops;

  bool operator==(const Outcome&) const = default;
};

/// A switch without workers: the stages that other traffic takes, and the fast path before them.
class Lab : private FrameSink, private WorkerSink {
 public:
  explicit Lab(const std::vector<ring::RingSpec>& rings) : current_(ring::RingSet(rings)) {}

  Outcome by_stages(const Bytes& bytes, std::uint16_t ingress) {
    const auto before = counters_.dropped;
    outcome_ = {};
    frame::Frame& frame = pool_.make(bytes, ingress);
    receive_.accept(frame, now_);
    if (frame.pair == 0) {
      l2_fast_path_.close();
    }
    dispatch_.accept(frame, now_);
    for (std::size_t reason = 0; reason < kDropReasons; ++reason) {
      outcome_.drops.push_back(counters_.dropped[reason] - before[reason]);
    }
    return outcome_;
  }

  /// By the stages where the fast path says so.
  Outcome by_either(const Bytes& bytes, std::uint16_t ingress) {
    const std::uint16_t port = l2_fast_path_.egress_of(bytes, ingress, now_.ms());
    if (port == frame::kNoPort) {
      return by_stages(bytes, ingress);
    }
    ++fast_;
    return {.ports = l2::PortSet{1} << port, .drops = std::vector<std::uint64_t>(kDropReasons)};
  }

  void begin_burst() { l2_fast_path_.begin_burst(); }

  void pass_time(std::uint64_t milliseconds) {
    now_ = frame::Instant{now_.ns + milliseconds * 1'000'000};
  }

  l2::MacTable& stations() { return stations_; }

  ring::CurrentRings& rings() { return current_; }

  l2::Bridge& bridge() { return bridge_; }

  Forward& forward() { return forward_; }

  frame::Trace& trace() { return trace_; }

  std::uint64_t now() const { return now_.ms(); }

  std::uint64_t fast() const { return fast_; }

  /// Port, age and pins of each station.
  auto known() const {
    std::map<wire::MacAddress, std::vector<std::uint64_t>> known;
    stations_.for_each(now_.ms(), [&](const wire::MacAddress& mac, std::uint16_t port,
                                      std::uint64_t silence, std::uint64_t pins) {
      known[mac] = {port, silence, pins};
    });
    return known;
  }

 private:
  void transmit(frame::Frame& frame, l2::PortSet ports) override {
    outcome_.ports = ports;
    pool_.release(frame);
  }

  void release(frame::Frame& frame) override { pool_.release(frame); }

  frame::Frame* originate(std::uint32_t /*bytes*/) override { return nullptr; }

  void to_worker(frame::Frame& frame, std::uint16_t /*ring_group*/,
                 frame::Instant /*now*/) override {
    outcome_.is_rings = true;
    pool_.release(frame);
  }

  void to_region(frame::Frame& frame, frame::Instant /*now*/) override { pool_.release(frame); }

  test::FramePool pool_;
  Outcome outcome_;
  frame::Instant now_ = frame::Instant{1'000'000'000};
  std::uint64_t fast_ = 0;
  ring::CurrentRings current_;
  l2::MacTable stations_{64, kAging};
  l2::Bridge bridge_{stations_, kPorts};
  conn::ForeignSessions sessions_{{}, ways_out_by(bridge_)};
  frame::FrameCounters counters_;
  frame::Trace trace_;
  Forward forward_{bridge_, std::vector<std::uint32_t>(kPorts, kLimit), *this, counters_, trace_};
  Receive receive_{current_, bridge_, counters_};
  SentProbes probes_; // none are sent
  std::optional<region::Address> regions_ = region::Address{kRegionsIp, kRegionsMac};
  Dispatch dispatch_{current_, {.entries = 64, .aging = kAging, .sessions = &sessions_},
                     forward_, *this,
                     probes_,  regions_};
  L2FastPath l2_fast_path_{current_, bridge_, dispatch_, forward_};
};

wire::MacAddress station(unsigned number) {
  return {{0x02, 0x20, 0, 0, 0, static_cast<std::uint8_t>(number)}};
}

/// A datagram from one station to another.
FrameSpec datagram(unsigned source, unsigned destination) {
  FrameSpec spec;
  spec.source_mac = station(source);
  spec.destination_mac = station(destination);
  spec.source = test::ip("192.0.2.1");
  spec.destination = test::ip("192.0.2.2");
  spec.udp_destination = 9;
  spec.payload.assign(64, 0x5a);
  return spec;
}

Bytes frame_between(unsigned source, unsigned destination) {
  return test::build(datagram(source, destination)).bytes;
}

const test::JobSpec kJob{.world = 3, .ports = 3};

/// Two labs that the same happens to.
class L2FastPathTest : public testing::Test {
 protected:
  /// Both must do the same with it.
  Outcome send(const Bytes& bytes, std::uint16_t ingress, const std::string& what = {}) {
    const Outcome expected = slow.by_stages(bytes, ingress);
    EXPECT_EQ(fast.by_either(bytes, ingress), expected) << what;
    EXPECT_EQ(fast.known(), slow.known()) << what;
    return expected;
  }

  template <typename Change>
  void both(Change&& change) {
    change(slow);
    change(fast);
  }

  void begin_burst() {
    both([](Lab& lab) { lab.begin_burst(); });
  }

  /// Station n is behind port n from now on.
  void introduce(unsigned stations) {
    begin_burst();
    for (unsigned number = 0; number < stations; ++number) {
      send(frame_between(number, number), static_cast<std::uint16_t>(number));
      begin_burst();
    }
  }

  /// Whether the fast path takes it.
  bool goes_fast(const Bytes& bytes, std::uint16_t ingress) {
    const std::uint64_t before = fast.fast();
    send(bytes, ingress);
    return fast.fast() != before;
  }

  const test::RingJob job{kJob};
  Lab slow{{job.ring()}};
  Lab fast{{job.ring()}};
};

TEST_F(L2FastPathTest, TakesOtherTrafficBetweenKnownStations) {
  introduce(3);
  EXPECT_TRUE(goes_fast(frame_between(0, 1), 0));
  EXPECT_TRUE(goes_fast(frame_between(0, 1), 0)) << "the next of the conversation";
  EXPECT_TRUE(goes_fast(frame_between(0, 2), 0)) << "another conversation";
  FrameSpec rdma = datagram(0, 1);
  rdma.udp_destination = 4791;
  EXPECT_TRUE(goes_fast(test::build(rdma).bytes, 0));
  EXPECT_TRUE(goes_fast(test::build(rdma).bytes, 0));
}

TEST_F(L2FastPathTest, FollowsAStationThatMovesWithinABurst) {
  introduce(3);
  EXPECT_TRUE(goes_fast(frame_between(0, 1), 0));
  send(frame_between(1, 2), 0); // station 1 is here now
  EXPECT_EQ(send(frame_between(0, 1), 0).ports, 0u) << "it stays on its port";
}

TEST_F(L2FastPathTest, FollowsAStationThatMovesByAFrameThatTakesTheStages) {
  introduce(3);
  EXPECT_TRUE(goes_fast(frame_between(0, 1), 0));
  test::Built of_ring = test::build(job.frame_of(0));
  std::ranges::copy(station(1).bytes, of_ring.bytes.begin() + 6);
  EXPECT_TRUE(send(of_ring.bytes, 0).is_rings);
  EXPECT_EQ(send(frame_between(0, 1), 0).ports, 0u);
}

TEST_F(L2FastPathTest, FollowsWhatControlChangesBetweenBursts) {
  introduce(3);
  const Bytes frame = frame_between(0, 1);
  EXPECT_TRUE(goes_fast(frame, 0));
  both([](Lab& lab) { lab.stations().forget_port(1); });
  begin_burst();
  EXPECT_EQ(send(frame, 0).ports, 0b1110u) << "flooded";
  introduce(3);
  EXPECT_TRUE(goes_fast(frame, 0));
  both([](Lab& lab) { lab.forward().set_frame_limit(1, 100); });
  begin_burst();
  EXPECT_EQ(send(frame, 0).ports, 0u) << "too long for that port";
}

TEST_F(L2FastPathTest, FollowsRingsThatComeAndGo) {
  introduce(3);
  const Bytes of_ring = test::build(job.frame_of(0)).bytes;
  EXPECT_TRUE(send(of_ring, 0).is_rings);
  both([](Lab& lab) {
    lab.rings().swap(std::make_shared<const ring::RingSet>(std::vector<ring::RingSpec>{}));
  });
  begin_burst();
  EXPECT_FALSE(send(of_ring, 0).is_rings);
  begin_burst();
  FrameSpec known = job.frame_of(0);
  known.source_mac = station(0);
  known.destination_mac = station(1);
  EXPECT_TRUE(goes_fast(test::build(known).bytes, 0));
  both([this](Lab& lab) {
    lab.rings().swap(std::make_shared<const ring::RingSet>(std::vector{job.ring()}));
  });
  begin_burst();
  EXPECT_TRUE(send(test::build(known).bytes, 0).is_rings);
}

TEST_F(L2FastPathTest, ForgetsStationsThatAge) {
  introduce(3);
  EXPECT_TRUE(goes_fast(frame_between(0, 1), 0));
  both([](Lab& lab) { lab.pass_time(kAging); });
  begin_burst();
  EXPECT_TRUE(goes_fast(frame_between(0, 1), 0)) << "not yet";
  both([](Lab& lab) { lab.pass_time(1); });
  begin_burst();
  EXPECT_EQ(send(frame_between(0, 1), 0).ports, 0b1110u);
}

TEST_F(L2FastPathTest, DoesNotMovePinnedStations) {
  introduce(3);
  both([](Lab& lab) { ASSERT_TRUE(lab.bridge().pin_source(frame_between(1, 0), 1, lab.now())); });
  begin_burst();
  send(frame_between(1, 2), 0);
  EXPECT_EQ(send(frame_between(0, 1), 0).ports, 0b0010u);
}

TEST_F(L2FastPathTest, KeepsToShutPorts) {
  introduce(3);
  EXPECT_TRUE(goes_fast(frame_between(0, 1), 0));
  both([](Lab& lab) { lab.bridge().shut(0b0010, l2::Bridge::Why::loop); });
  begin_burst();
  const auto is_dropped = [this](const Bytes& frame, std::uint16_t ingress) {
    const Outcome outcome = send(frame, ingress);
    return outcome.ports == 0 &&
           outcome.drops[static_cast<std::size_t>(DropReason::not_bridged)] == 1;
  };
  EXPECT_TRUE(is_dropped(frame_between(0, 1), 0));
  EXPECT_TRUE(is_dropped(frame_between(1, 0), 1));
  EXPECT_TRUE(is_dropped(frame_between(7, 0), 1));
  begin_burst();
  EXPECT_TRUE(goes_fast(frame_between(0, 2), 0));
}

TEST_F(L2FastPathTest, DropsImpostorsOfTiedStations) {
  introduce(3);
  both([](Lab& lab) { ASSERT_TRUE(lab.stations().tie(station(1), 1, lab.now())); });
  begin_burst();
  EXPECT_TRUE(goes_fast(frame_between(1, 0), 1));
  begin_burst();
  const Outcome outcome = send(frame_between(1, 0), 2);
  EXPECT_EQ(outcome.ports, 0u);
  EXPECT_EQ(outcome.drops[static_cast<std::size_t>(DropReason::tied_elsewhere)], 1u);
}

/// Whatever lies behind their EtherType, which others use too.
TEST_F(L2FastPathTest, LeavesLoopProbesToTheStages) {
  introduce(3);
  Bytes frame = frame_between(0, 1);
  test::put16(frame, 12, 0x88b5);
  EXPECT_FALSE(goes_fast(frame, 0));
}

/// Dispatch drops them.
TEST_F(L2FastPathTest, LeavesWhoPretendsToBeTheRegionsToTheStages) {
  introduce(3);
  EXPECT_TRUE(goes_fast(frame_between(0, 1), 0));
  FrameSpec rdma = datagram(0, 1);
  rdma.udp_destination = 4791;
  EXPECT_TRUE(goes_fast(test::build(rdma).bytes, 0));
  rdma.source = kRegionsIp;
  EXPECT_FALSE(goes_fast(test::build(rdma).bytes, 0));
  FrameSpec by_mac = datagram(0, 1);
  by_mac.source_mac = kRegionsMac;
  EXPECT_FALSE(goes_fast(test::build(by_mac).bytes, 0));
  Bytes arp = frame_between(0, 1);
  arp[12] = 0x08; // RFC 826
  arp[13] = 0x06;
  EXPECT_FALSE(goes_fast(arp, 0));
}

TEST_F(L2FastPathTest, LeavesAllFramesToTheStagesWhileSomebodyTraces) {
  introduce(3);
  both([](Lab& lab) { lab.trace().switch_on(); });
  begin_burst();
  EXPECT_FALSE(goes_fast(frame_between(0, 1), 0));
}

/// Frames that differ from a ring's in one field only, each before one of the ring in a burst.
TEST_F(L2FastPathTest, TakesNoRingsFrameForOneLikeTheLast) {
  FrameSpec spec = job.frame_of(0);
  spec.source_mac = station(0);
  spec.destination_mac = station(1);
  const Bytes of_ring = test::build(spec).bytes;
  constexpr std::size_t protocol = 14 + 9; // RFC 791 §3.1
  constexpr std::size_t destination = 14 + 19;
  constexpr std::size_t udp_port = 14 + 20 + 3;
  constexpr std::size_t version = 14;
  for (const std::size_t field : {protocol, destination, udp_port, version}) {
    introduce(3);
    Bytes other = of_ring;
    other[field] ^= 0x10;
    send(other, 0, "byte " + std::to_string(field));
    EXPECT_TRUE(send(of_ring, 0, "byte " + std::to_string(field)).is_rings);
    begin_burst();
    EXPECT_EQ(goes_fast(other, 0), field != version) << "byte " << field;
  }
}

TEST_F(L2FastPathTest, LetsNoFrameOvertakeOneThatTakesTheStages) {
  introduce(3);
  send(frame_between(0, 3), 0); // to a station that is not known
  EXPECT_FALSE(goes_fast(frame_between(0, 1), 0));
  begin_burst();
  EXPECT_TRUE(goes_fast(frame_between(0, 1), 0));
}

/// docs/protocol.md §3: a message that nobody announced bars its queue pair.
TEST_F(L2FastPathTest, KeepsToTheMagicRule) {
  introduce(3);
  FrameSpec message = datagram(0, 1);
  message.udp_destination = 4791;
  message.opcode = static_cast<std::uint8_t>(wire::Opcode::write_first);
  message.payload.assign(256, 0);
  const Bytes plain = test::build(message).bytes;
  EXPECT_TRUE(goes_fast(plain, 0));
  test::put32(message.payload, 0, kInaMagic);
  EXPECT_EQ(send(test::build(message).bytes, 0).ports, 0u) << "unannounced";
  begin_burst();
  message.opcode = static_cast<std::uint8_t>(wire::Opcode::write_middle);
  EXPECT_EQ(send(test::build(message).bytes, 0).ports, 0u) << "what follows it";
}

/// Frames of all kinds from few stations, so that what one teaches matters for the next.
class RandomTraffic {
 public:
  explicit RandomTraffic(const test::RingJob& job) : job_(job) {}

  bool says(double probability) { return std::bernoulli_distribution(probability)(random_); }

  unsigned below(unsigned limit) {
    return std::uniform_int_distribution<unsigned>(0, limit - 1)(random_);
  }

  Bytes next() {
    if (says(0.5) && !last_.empty()) {
      return last_;
    }
    FrameSpec spec = says(0.2) ? job_.frame_of(static_cast<std::uint16_t>(below(3)))
                               : datagram(below(4), below(5));
    spec.source_mac = station(below(4));
    spec.destination_mac = destination();
    dress(spec);
    last_ = test::build(spec).bytes;
    if (says(0.05)) {
      last_.resize(below(static_cast<unsigned>(last_.size())) + 1);
    }
    if (says(0.1)) {
      last_[below(static_cast<unsigned>(std::min<std::size_t>(last_.size(), 64)))] ^= 1u
                                                                                      << below(8);
    }
    return last_;
  }

 private:
  wire::MacAddress destination() {
    if (says(0.03)) {
      return {{0x01, 0x80, 0xc2, 0, 0, 0x0e}};
    }
    return says(0.03) ? wire::MacAddress{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}} : station(below(5));
  }

  void dress(FrameSpec& spec) {
    if (says(0.3)) {
      spec.udp_destination = 4791;
      spec.opcode = static_cast<std::uint8_t>(below(0x14));
      spec.qp = below(2);
    }
    if (says(0.05)) {
      spec.tags.push_back({.tpid = static_cast<std::uint16_t>(says(0.5) ? 0x8100 : 0x88a8)});
    }
    if (says(0.05)) {
      spec.ip_options.assign(4, 0);
    }
    if (says(0.05)) {
      spec.fragment = static_cast<std::uint16_t>(below(0x4000));
    }
    spec.payload.assign(says(0.05) ? kLimit : 4 * below(60), static_cast<std::uint8_t>(below(256)));
    if (says(0.02) && spec.payload.size() >= 4) {
      test::put32(spec.payload, 0, kInaMagic);
    }
  }

  const test::RingJob& job_;
  std::mt19937 random_{20261123};
  Bytes last_;
};

TEST_F(L2FastPathTest, DoesWhatTheStagesDo) {
  constexpr unsigned bursts = test::rounds(4000);
  RandomTraffic traffic(job);
  for (unsigned burst = 0; burst < bursts; ++burst) {
    if (traffic.says(0.3)) {
      both([time = traffic.below(30)](Lab& lab) { lab.pass_time(time); });
    }
    if (traffic.says(0.02)) {
      both([port = traffic.below(kPorts)](Lab& lab) {
        lab.stations().forget_port(static_cast<std::uint16_t>(port));
      });
    }
    begin_burst();
    const auto ingress = static_cast<std::uint16_t>(traffic.below(kPorts));
    for (unsigned frame = traffic.below(8); frame > 0; --frame) {
      send(traffic.next(), ingress, "burst " + std::to_string(burst));
    }
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(fast.fast(), bursts / 4);
}

} // namespace
} // namespace weir::stage::l2_fast_path_test
