// SPDX-License-Identifier: BSD-3-Clause

/// Ports that do not bridge, and loop probes, in a whole switch (docs/operating.md, "Loops").

#include "support/frame_builder.hpp"
#include "support/ring_job.hpp"
#include "switch_fixture.hpp"
#include "wire/loop_probe.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace weir::stage::bridging_test {
namespace {

using test::Bytes;
using test::RingJob;

constexpr std::uint64_t kThisSwitch = 0x1111;
constexpr std::uint64_t kOtherSwitch = 0x2222;

wire::MacAddress station(std::uint8_t number) {
  return {{0x02, 0xee, 0, 0, 0, number}};
}

/// Not of a ring.
Bytes ethernet(const wire::MacAddress& to, const wire::MacAddress& from) {
  Bytes frame(60, 0x42);
  std::copy(to.bytes.begin(), to.bytes.end(), frame.begin());
  std::copy(from.bytes.begin(), from.bytes.end(), frame.begin() + 6);
  test::put16(frame, 12, 0x0806);
  return frame;
}

Bytes probe(std::uint64_t sender, std::uint16_t port, std::uint64_t token) {
  const wire::LoopProbeFrame frame = frame_of(wire::loop_probe(sender, port, token));
  return {frame.begin(), frame.end()};
}

/// Three ranks at ports 0 to 2, of which port 1 does not bridge, and port 3 with nobody.
class BridgingTest : public testing::Test {
 protected:
  BridgingTest() {
    fixture.inside().bridge().shut(0b0010, l2::Bridge::Why::configured);
    SentProbes& probes = fixture.inside().probes();
    probes = {.are_sent = true, .sender = kThisSwitch, .to_switches = 0};
    for (std::uint16_t port = 0; port < 4; ++port) {
      probes.tokens[port] = {.newest = 100u + port, .former = 200u + port};
    }
  }

  l2::PortSet ports_of(const std::vector<test::Sent>& sent) {
    return sent.empty() ? 0 : sent.front().ports;
  }

  std::optional<std::uint16_t> port_of(const wire::MacAddress& mac) {
    return fixture.inside().stations().port_of(mac, fixture.now.ms());
  }

  std::uint64_t own(std::uint16_t port) { return fixture.inside().seen_probes().ports[port].own; }

  std::uint64_t others(std::uint16_t port) {
    return fixture.inside().seen_probes().ports[port].others;
  }

  void say_hello() {
    for (std::uint16_t rank = 0; rank < 3; ++rank) {
      results = fixture.send(job.hello(rank), job.port_of(rank));
    }
  }

  RingJob job{{.world = 3, .ports = 3}};
  SwitchFixture fixture{{&job}};
  std::vector<test::Sent> results;
};

TEST_F(BridgingTest, RanksMeetThroughAPortThatDoesNotBridge) {
  say_hello();
  ASSERT_EQ(results.size(), 3u);
  std::vector<test::Sent> sent;
  for (std::uint16_t rank = 0; rank < 3; ++rank) {
    sent = fixture.send(job.message(rank, 1, Bytes(16, 1)).front(), job.port_of(rank));
  }
  ASSERT_EQ(sent.size(), 3u);
  l2::PortSet left = 0;
  for (const test::Sent& result : sent) {
    left |= result.ports;
  }
  EXPECT_EQ(left, 0b0111u);
  EXPECT_EQ(fixture.accounting().frames.all_dropped(), 0u);
}

TEST_F(BridgingTest, PacketsBetweenNeighboursTeachNothingThere) {
  say_hello();
  fixture.send(job.message(1, 1, Bytes(16, 1)).front(), 1);
  EXPECT_EQ(port_of(job.mac_of(1)), std::nullopt) << "neither learnt nor pinned";
  EXPECT_EQ(port_of(job.mac_of(0)), 0);
  EXPECT_EQ(ports_of(fixture.send(ethernet(job.mac_of(1), station(1)), 0)), 0b1100u)
      << "flooded, but not there";
}

TEST_F(BridgingTest, NothingElseEntersOrLeavesThere) {
  EXPECT_TRUE(fixture.send(ethernet(station(1), station(2)), 1).empty());
  EXPECT_TRUE(fixture.send(ethernet(test::mac("ff:ff:ff:ff:ff:ff"), station(2)), 1).empty());
  EXPECT_EQ(fixture.dropped(DropReason::not_bridged), 2u);
  EXPECT_EQ(port_of(station(2)), std::nullopt);
  EXPECT_EQ(ports_of(fixture.send(ethernet(test::mac("ff:ff:ff:ff:ff:ff"), station(3)), 0)),
            0b1100u);
  EXPECT_EQ(ports_of(fixture.send(ethernet(station(2), station(3)), 0)), 0b1100u);
}

/// Plain RoCE between neighbours whose ports nobody knows yet would be bridged.
TEST_F(BridgingTest, NeighboursThatNobodyHasBoundAreNotBridged) {
  test::FrameSpec plain = job.frame_of(1);
  plain.opcode = 0x04;
  plain.payload.assign(64, 1);
  EXPECT_TRUE(fixture.send(test::build(plain), 1).empty());
  EXPECT_EQ(fixture.dropped(DropReason::not_bridged), 1u);
}

TEST_F(BridgingTest, StrangersRoceTeachesTheMagicRuleNothingThere) {
  test::FrameSpec stranger;
  stranger.source = test::ip("192.0.2.1");
  stranger.destination = test::ip("192.0.2.2");
  stranger.opcode = 0x04;
  stranger.payload.assign(64, 1);
  EXPECT_TRUE(fixture.send(test::build(stranger), 1).empty());
  EXPECT_EQ(fixture.dropped(DropReason::not_bridged), 1u);
}

TEST_F(BridgingTest, OwnProbesEndHereAndAreCounted) {
  EXPECT_TRUE(fixture.send(probe(kThisSwitch, 2, 102), 0).empty());
  EXPECT_TRUE(fixture.send(probe(kThisSwitch, 2, 202), 0).empty()) << "the one before";
  EXPECT_EQ(own(0), 2u);
  EXPECT_EQ(fixture.inside().seen_probes().ports[0].own_from, 2u);
  EXPECT_TRUE(fixture.send(probe(kThisSwitch, 0, 100), 0).empty());
  EXPECT_EQ(own(0), 2u) << "back by its own port: no loop through this switch";
  EXPECT_TRUE(fixture.send(probe(kThisSwitch, 2, 102), 1).empty());
  EXPECT_EQ(own(1), 1u) << "a wrong cable";
  EXPECT_EQ(fixture.dropped(DropReason::loop_probe), 4u);
}

/// Who sees the probes of one port knows the switch's number, and no token but that port's.
TEST_F(BridgingTest, ForgedAndOldProbesSayNothing) {
  const std::vector<Bytes> forged{
      probe(kThisSwitch, 2, 100), // the token of port 0
      probe(kThisSwitch, 2, 302), // of some seconds ago
      probe(kThisSwitch, 2, 0),   probe(kThisSwitch, 9, 0), probe(kThisSwitch, 0xffff, 102),
  };
  for (const Bytes& frame : forged) {
    EXPECT_TRUE(fixture.send(frame, 0).empty());
  }
  EXPECT_EQ(own(0) + others(0), 0u);
  EXPECT_EQ(fixture.dropped(DropReason::loop_probe), forged.size());
}

TEST_F(BridgingTest, ProbesOfOthersGoOnToSwitchesAlone) {
  const Bytes frame = probe(kOtherSwitch, 7, 5);
  EXPECT_TRUE(fixture.send(frame, 0).empty()) << "hosts need none of them";
  EXPECT_EQ(others(0), 1u);
  EXPECT_EQ(fixture.inside().seen_probes().ports[0].others_from, kOtherSwitch);
  fixture.inside().probes().to_switches = 0b0111;
  const auto sent = fixture.send(frame, 0);
  EXPECT_EQ(ports_of(sent), 0b0100u) << "not by the port that does not bridge";
  EXPECT_EQ(sent.front().bytes, frame);
  EXPECT_TRUE(fixture.send(frame, 1).empty());
  EXPECT_EQ(others(1), 1u);
}

TEST_F(BridgingTest, NobodyIsLearntFromAProbe) {
  const Bytes frame = probe(kOtherSwitch, 7, 5);
  wire::MacAddress source;
  std::copy_n(frame.begin() + 6, source.bytes.size(), source.bytes.begin());
  fixture.send(frame, 0);
  EXPECT_EQ(port_of(source), std::nullopt);
}

TEST_F(BridgingTest, ASwitchThatSendsNoneTakesProbesForOtherFrames) {
  fixture.inside().probes() = {};
  EXPECT_EQ(ports_of(fixture.send(probe(kOtherSwitch, 7, 5), 0)), 0b1100u);
  EXPECT_EQ(others(0), 0u);
}

TEST_F(BridgingTest, ImpostorsOfTiedStationsAreDropped) {
  ASSERT_TRUE(fixture.inside().stations().tie(station(1), 3, 0));
  EXPECT_EQ(ports_of(fixture.send(ethernet(station(1), station(2)), 0)), 0b1000u);
  EXPECT_TRUE(fixture.send(ethernet(station(2), station(1)), 2).empty());
  EXPECT_EQ(fixture.dropped(DropReason::tied_elsewhere), 1u);
  EXPECT_EQ(port_of(station(1)), 3);
  EXPECT_EQ(ports_of(fixture.send(ethernet(station(2), station(1)), 3)), 0b0001u);
}

} // namespace
} // namespace weir::stage::bridging_test
