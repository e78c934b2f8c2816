// SPDX-License-Identifier: BSD-3-Clause

/// docs/protocol.md §3, "Ports": neighbours' frames must enter by their own ports.

#include "classifier_fixture.hpp"

#include <functional>

namespace weir::conn::classify_ports_test {
namespace {

using test::Built;
using test::kSession;
using test::RingJob;

/// A ring of three whose rank 1 is at port 1.
struct PortRow {
  const char* description;
  std::function<Built(RingJob&)> frame;
  const char* from_its_port;
};

const std::vector<PortRow> kOfRankOne{
    {"a message", [](RingJob& j) { return j.message(1, 1, three_packets())[0]; },
     "0.1 message 1 packet 0"},
    {"one with a bad ICRC",
     [](RingJob& j) { return damaged(j.message(1, 1, three_packets())[0], 200); }, "drop bad_icrc"},
    {"a malformed one",
     [](RingJob& j) {
       Built cut = j.message(1, 1, three_packets())[0];
       cut.bytes.pop_back();
       return cut;
     },
     "drop length_mismatch"},
    {"its hello", [](RingJob& j) { return j.hello(1); }, "0.1 message 0 packet 0"},
    {"a hello of another run",
     [](RingJob& j) { return poked(j.hello(1), test::kInaSessionAt, 99); }, "waits 0.1"},
    {"a foreign hello", [](RingJob& j) { return poked(j.hello(1), test::kInaRingAt, 77); },
     "interleaves 0.1 unknown_ring"},
    {"a plain message on any QP", [](RingJob& j) { return with_qp(plain(j, 1, kOnly), 0x999); },
     "forward"},
    {"a middle on any QP", [](RingJob& j) { return with_qp(plain(j, 1, kMiddle), 0x999); },
     "drop unclassified"},
    {"an ACK to its successor", [](RingJob& j) { return plain(j, 1, 0x11); }, "forward"},
    {"an ACK to its predecessor", [](RingJob& j) { return backwards(j, plain(j, 0, 0x11)); },
     "forward"},
    {"a plain message to its predecessor",
     [](RingJob& j) { return backwards(j, plain(j, 0, kOnly)); }, "forward"},
};

void expect_one_port(const test::JobSpec& spec) {
  for (const PortRow& row : kOfRankOne) {
    RingJob job(spec);
    ClassifierFixture fixture({job.ring()});
    for (const std::uint16_t rank : {0, 1, 2}) {
      fixture.classify(job.hello(rank), rank);
    }
    ASSERT_TRUE(fixture.incarnations().status_of(0, 1).connected);
    const Built frame = row.frame(job);
    for (const std::uint16_t port : {0, 2, 3}) {
      EXPECT_EQ(fixture.classify(frame, port), "drop wrong_port") << row.description;
    }
    EXPECT_EQ(fixture.classify(frame, 1), row.from_its_port) << row.description;
  }
}

TEST(Ports, TheConfigurationTiesAMemberToItsPort) {
  expect_one_port({.world = 3, .pins_ports = true});
}

TEST(Ports, AHelloTiesAMemberToItsPort) {
  expect_one_port({.world = 3});
}

TEST(Ports, ConfiguredOnesHoldBeforeAnyHello) {
  RingJob job({.world = 3, .pins_ports = true});
  ClassifierFixture fixture({job.ring()});
  EXPECT_EQ(fixture.classify(job.hello(1), 0), "drop wrong_port");
  EXPECT_EQ(fixture.classify(plain(job, 1, kOnly), 0), "drop wrong_port");
  EXPECT_EQ(fixture.classify(job.hello(1), 1), "waits 0.1");
}

TEST(Ports, AWaitingHelloTiesNobody) {
  RingJob job({.world = 3});
  ClassifierFixture fixture({job.ring()});
  EXPECT_EQ(fixture.classify(job.hello(1), 3), "waits 0.1");
  EXPECT_EQ(fixture.classify(with_qp(plain(job, 1, kOnly), 0x999), 1), "forward");
}

TEST(Ports, AHellosPortIsFreeWhenItsRunIsOver) {
  RingJob job({.world = 3});
  ClassifierFixture fixture({job.ring()});
  fixture.admit(job); // by port 0
  const Built other_qp = with_qp(plain(job, 1, kOnly), 0x999);
  EXPECT_EQ(fixture.classify(other_qp, 1), "drop wrong_port");
  fixture.incarnations().reset(0);
  EXPECT_EQ(fixture.classify(other_qp, 1), "forward");
}

/// What remains of a ring without ports or nonce (docs/security.md), and how it ends.
TEST(Ports, ARingWithoutThemIsForWhoSaysItsHellosFirstUntilAReset) {
  RingJob job({.world = 3});
  RingJob strangers({.world = 3});
  strangers.restart(9); // a larger epoch
  ClassifierFixture fixture({job.ring()});
  EXPECT_EQ(fixture.classify(strangers.hello(0), 3), "waits 0.0");
  EXPECT_EQ(fixture.classify(strangers.hello(1), 3), "waits 0.1");
  EXPECT_EQ(fixture.classify(strangers.hello(2), 3), "begins 0");
  EXPECT_EQ(fixture.classify(job.hello(0), 0), "drop wrong_port");
  EXPECT_EQ(fixture.classify(job.hello(0), 3), "drop old_epoch");
  fixture.incarnations().reset(0);
  EXPECT_EQ(fixture.classify(job.hello(0), 0), "waits 0.0");
  EXPECT_EQ(fixture.classify(job.hello(1), 1), "waits 0.1");
  EXPECT_EQ(fixture.classify(job.hello(2), 2), "begins 0");
}

/// A member that has moved can say hello only after its old run is over.
TEST(Ports, TheNextRunMayComeByOthers) {
  RingJob job({.world = 2});
  ClassifierFixture fixture({job.ring()});
  fixture.admit(job);
  fixture.incarnations().reset(0);
  job.restart(2);
  EXPECT_EQ(fixture.classify(job.hello(0), 2), "waits 0.0");
  EXPECT_EQ(fixture.classify(job.hello(1), 3), "begins 0");
  const Built first = job.message(0, 1, three_packets())[0];
  EXPECT_EQ(fixture.classify(first, 0), "drop wrong_port");
  EXPECT_EQ(fixture.classify(first, 2), "0.0 message 1 packet 0");
}

// ---- The configuration ties a member to another port. ----

TEST(Ports, ALiveConnectionGoesOnByItsNewPort) {
  RingJob job({.world = 3, .pins_ports = true});
  ClassifierFixture fixture({job.ring()});
  fixture.admit(job);
  ring::RingSpec moved = job.ring();
  moved.members[1].port = 3;
  EXPECT_EQ(fixture.change(moved), "");
  const std::vector<Built> message = job.message(1, 1, three_packets());
  EXPECT_EQ(fixture.classify(message[0], 1), "drop wrong_port");
  EXPECT_EQ(fixture.classify(message[0], 3), "0.1 message 1 packet 0");
  EXPECT_EQ(fixture.classify(message[1], 3), "0.1 message 1 packet 1");
  EXPECT_EQ(fixture.classify(job.message(0, 1, three_packets())[0], 0), "0.0 message 1 packet 0")
      << "another member's";
}

TEST(Ports, AHelloThatWaitsAndCameByTheOldPortIsGivenUp) {
  RingJob job({.world = 3, .pins_ports = true});
  ClassifierFixture fixture({job.ring()});
  EXPECT_EQ(fixture.classify(job.hello(0), 0), "waits 0.0");
  EXPECT_EQ(fixture.classify(job.hello(1), 1), "waits 0.1");
  ring::RingSpec moved = job.ring();
  moved.members[1].port = 3;
  EXPECT_EQ(fixture.change(moved), ", gave up wrong_port");
  EXPECT_EQ(fixture.classify(job.hello(1), 3), "waits 0.1");
  EXPECT_EQ(fixture.classify(job.hello(2), 2), "begins 0");
}

TEST(Ports, OneThatIsTiedWhereItIsNoticesNothing) {
  RingJob job({.world = 3});
  ClassifierFixture fixture({job.ring()});
  fixture.admit(job); // by port 0
  ring::RingSpec tied = job.ring();
  tied.members[1].port = 0;
  EXPECT_EQ(fixture.change(tied), "");
  EXPECT_EQ(fixture.classify(job.message(1, 1, three_packets())[0], 0), "0.1 message 1 packet 0");
  EXPECT_EQ(fixture.change(job.ring()), "") << "untied again";
  EXPECT_EQ(fixture.classify(job.message(1, 1, three_packets())[1], 0), "0.1 message 1 packet 1");
  EXPECT_EQ(fixture.classify(job.message(1, 1, three_packets())[2], 1), "drop wrong_port");
}

// ---- Rings that share neighbours. ----

/// Two rings of the same hosts. The first one's hellos came by ports 0, 1, 2.
struct SharedHosts {
  SharedHosts() {
    for (const std::uint16_t rank : {0, 1, 2}) {
      fixture.classify(one.hello(rank), rank);
    }
  }

  void expect(const char* description, const Built& frame, std::uint16_t port,
              const char* expected) {
    EXPECT_EQ(fixture.classify(frame, port), expected) << description;
  }

  RingJob one{{.ring = 1, .world = 3, .first_qp = 0x100}};
  RingJob two{{.ring = 2, .world = 3, .session = kSession + 1, .first_qp = 0x200}};
  ClassifierFixture fixture{{one.ring(), two.ring()}};
};

TEST(Ports, OneRingsHellosDoNotKeepAnotherFromForming) {
  SharedHosts hosts;
  hosts.expect("its hello", hosts.two.hello(0), 3, "waits 1.0");
  hosts.expect("a bad ICRC", damaged(hosts.two.hello(0), hosts.two.hello(0).icrc), 3,
               "drop bad_icrc");
  hosts.expect("the first one's hello", hosts.one.hello(0), 3, "drop wrong_port");
  hosts.expect("another run's", poked(hosts.one.hello(0), test::kInaSessionAt, 9), 3,
               "drop wrong_port");
  hosts.expect("its data", hosts.two.message(0, 1, three_packets())[0], 3, "drop wrong_port");
  hosts.expect("a plain message", with_qp(plain(hosts.one, 0, kOnly), 0x999), 3, "drop wrong_port");
  hosts.expect("a foreign hello", poked(hosts.two.hello(0), test::kInaRingAt, 77), 3,
               "drop wrong_port");
  hosts.expect("rank 1's", hosts.two.hello(1), 3, "waits 1.1");
  hosts.expect("rank 2's", hosts.two.hello(2), 3, "begins 1");
}

TEST(Ports, EachRingsConnectionsKeepToTheirOwn) {
  SharedHosts hosts;
  for (const std::uint16_t rank : {0, 1, 2}) {
    hosts.fixture.classify(hosts.two.hello(rank), 3);
  }
  const auto first = hosts.one.message(0, 1, three_packets());
  const auto second = hosts.two.message(0, 1, three_packets());
  hosts.expect("the first's FIRST", first[0], 3, "drop wrong_port");
  hosts.expect("from its port", first[0], 0, "0.0 message 1 packet 0");
  hosts.expect("its middle", first[1], 3, "drop wrong_port");
  hosts.expect("a READ on its QP", plain(hosts.one, 0, 0x0c), 3, "drop wrong_port");
  hosts.expect("a plain message on its QP", plain(hosts.one, 0, kOnly), 3, "drop wrong_port");
  hosts.expect("a foreign hello on its QP", poked(hosts.one.hello(0), test::kInaRingAt, 77), 3,
               "drop wrong_port");
  hosts.expect("from its port", first[1], 0, "0.0 message 1 packet 1");
  hosts.expect("the second's FIRST", second[0], 0, "drop wrong_port");
  hosts.expect("from its port", second[0], 3, "1.0 message 1 packet 0");
  hosts.expect("its middle", second[1], 0, "drop wrong_port");
  hosts.expect("from its port", second[1], 3, "1.0 message 1 packet 1");
  hosts.expect("nobody's port", second[1], 1, "drop wrong_port");
}

// ---- Claims of queue pairs (docs/protocol.md §9). ----

constexpr std::uint16_t kLiarsPort = 3;

test::JobSpec telling(std::uint32_t ring, std::uint32_t first_qp) {
  return {.ring = ring, .first_qp = first_qp, .first_own_qp = 0x500, .ack_timeout = 14};
}

/// Two rings of the same two hosts, whose ranks call the same queue pairs their own.
struct TwoClaims {
  TwoClaims() { fixture.admit(honest); } // by port 0

  bool speaks_for(std::uint16_t ring) { return fixture.incarnations().may_answer({ring, 0}); }

  /// Both ranks of the lying ring say hello by this port.
  void lie_by(std::uint16_t port) {
    for (const std::uint16_t rank : {0, 1}) {
      fixture.classify(liar.hello(rank), port);
    }
  }

  RingJob honest{telling(1, 0x100)};
  RingJob liar{telling(2, 0x200)};
  ClassifierFixture fixture{{honest.ring(), liar.ring()}};
};

TEST(Claims, AHelloThatWaitsSilencesNobodyAtAnotherPort) {
  for (const std::uint16_t port : {1, 3, 63}) {
    TwoClaims two;
    ASSERT_TRUE(two.speaks_for(0));
    EXPECT_EQ(two.fixture.classify(two.liar.hello(0), port), "waits 1.0");
    EXPECT_TRUE(two.speaks_for(0)) << port;
  }
}

TEST(Claims, AHelloThatWaitsSilencesItsOwnPort) {
  TwoClaims two;
  EXPECT_EQ(two.fixture.classify(two.liar.hello(0), 0), "waits 1.0");
  EXPECT_FALSE(two.speaks_for(0));
  two.fixture.incarnations().reset(1);
  two.fixture.take_given_up();
  EXPECT_TRUE(two.speaks_for(0));
}

/// Each of the two hellos is the only one of its port.
TEST(Claims, HellosThatWaitAtTwoPortsAreBothKeptAlive) {
  RingJob honest(telling(1, 0x100));
  RingJob liar(telling(2, 0x200));
  ClassifierFixture fixture({honest.ring(), liar.ring()});
  fixture.classify(honest.hello(0), 0);
  fixture.classify(liar.hello(0), kLiarsPort);
  const auto is_sole = [&](std::uint16_t ring) {
    for (const WaitingHello& hello : fixture.incarnations().waiting_hellos_of(ring).of(0)) {
      if (hello.frame != nullptr) {
        return fixture.incarnations().is_sole_claim(hello.claim);
      }
    }
    return false;
  };
  EXPECT_TRUE(is_sole(0));
  EXPECT_TRUE(is_sole(1));
}

/// Between the same neighbours nobody can tell whose acknowledgements are whose.
TEST(Claims, TwoLiveConnectionsOfTheSameNeighboursSilenceEachOther) {
  TwoClaims two;
  two.lie_by(kLiarsPort);
  ASSERT_TRUE(two.fixture.incarnations().status_of(1, 0).connected);
  EXPECT_FALSE(two.speaks_for(0));
  EXPECT_FALSE(two.speaks_for(1));
  two.fixture.incarnations().reset(1);
  EXPECT_TRUE(two.speaks_for(0));
}

TEST(Claims, TheLaterOneIsAnsweredWhenTheEarlierOneEnds) {
  TwoClaims two;
  two.lie_by(kLiarsPort);
  two.fixture.incarnations().reset(0);
  EXPECT_TRUE(two.speaks_for(1));
}

TEST(Claims, AClaimMovesWithItsMember) {
  TwoClaims two;
  ring::RingSpec moved = two.honest.ring();
  moved.members[0].port = kLiarsPort;
  moved.members[1].port = 1;
  two.fixture.change(moved);
  EXPECT_TRUE(two.speaks_for(0));
  EXPECT_EQ(two.fixture.classify(two.liar.hello(0), kLiarsPort), "waits 1.0");
  EXPECT_FALSE(two.speaks_for(0));
}

} // namespace
} // namespace weir::conn::classify_ports_test
