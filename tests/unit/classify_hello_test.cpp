// SPDX-License-Identifier: BSD-3-Clause

/// docs/protocol.md §2a: hellos wait, incarnations begin and end, connections live, die and age.

#include "classifier_fixture.hpp"

#include <functional>

namespace weir::conn::classify_hello_test {
namespace {

using test::Built;
using test::kNonce;
using test::kSession;
using test::RingJob;

/// The rank's hello of another run.
Built hello_of_run(const RingJob& job, std::uint16_t rank, std::uint32_t epoch,
                   std::uint32_t nonce) {
  return poked(poked(job.hello(rank), test::kInaEpochAt, epoch), test::kInaSessionAt, nonce);
}

/// A packet on the hello's connection, `ahead` PSNs from it.
Built at_hello(const RingJob& job, Built frame, std::int32_t ahead) {
  return with_psn(std::move(frame), psn_of(job.hello(0)) + static_cast<std::uint32_t>(ahead));
}

// ---- Beginning. ----

TEST(Incarnation, HellosWaitUntilEveryRankHasSaidOne) {
  RingJob job({.world = 3});
  ClassifierFixture fixture({job.ring()});
  const auto other = job.message(1, 1, three_packets());
  expect_steps(fixture, {{"no incarnation", other[0], "drop no_connection"},
                         {"no hello: middle", other[1], "drop unclassified"},
                         {"a hello", job.hello(0), "waits 0.0"},
                         {"its repeat", job.hello(0), "drop repeat_held"},
                         {"another rank's", job.hello(2), "waits 0.2"},
                         {"still nobody is admitted", other[0], "drop no_connection"}});
  EXPECT_EQ(fixture.incarnations().status_of(0, 0).waiting_hellos, 1u);
  EXPECT_FALSE(fixture.incarnations().status_of(0, 0).connected);
  EXPECT_EQ(fixture.incarnations().incarnation_of(0), std::nullopt);
  expect_steps(fixture, {{"the last", job.hello(1), "begins 0"},
                         {"now they are", other[0], "0.1 message 1 packet 0"}});
  EXPECT_EQ(fixture.incarnations().incarnation_of(0), (Incarnation{1, kNonce}));
  EXPECT_EQ(fixture.incarnations().session_of(0), kSession);
  EXPECT_EQ(fixture.incarnations().waiting_hellos(), 0u);
}

TEST(Incarnation, TheHelloIsMessageZeroFromThenOn) {
  RingJob job({.world = 2});
  ClassifierFixture fixture({job.ring()});
  fixture.admit(job);
  expect_steps(
      fixture,
      {{"a repeat", job.hello(0), "0.0 message 0 packet 0"},
       {"a repeat elsewhere", with_qp(job.hello(0), 0x999), "drop hello_elsewhere"},
       {"on another's connection", with_qp(job.hello(1), job.qp_of(0)), "drop hello_elsewhere"},
       {"make that known", with_qp(plain(job, 0, kOnly), 0x999), "forward"},
       {"the hello there", with_qp(job.hello(0), 0x999), "drop hello_elsewhere"},
       {"at another PSN", with_psn(job.hello(0), 77), "drop history_conflict"},
       {"onwards", job.message(0, 1, three_packets())[0], "0.0 message 1 packet 0"}});
}

/// Version 1 answered a second run of the same epoch from the first one's cache.
TEST(Incarnation, ASecondRunOfTheSameEpochBeginsAnew) {
  RingJob job({.world = 3});
  ClassifierFixture fixture({job.ring()});
  fixture.admit(job);
  const RingJob first = job;
  const auto before = job.message(0, 1, three_packets());
  ASSERT_EQ(fixture.classify(before[0]), "0.0 message 1 packet 0");
  job.restart(1);
  const auto after = job.message(0, 1, three_packets());
  expect_steps(fixture, {{"its first hello", job.hello(1), "waits 0.1"},
                         {"the first run goes on", before[1], "0.0 message 1 packet 1"},
                         {"its second", job.hello(0), "waits 0.0"},
                         {"its last", job.hello(2), "begins 0"},
                         {"the first run's FIRST", before[0], "drop wrong_session"},
                         {"its middle", before[1], "drop dead_connection"},
                         {"its hello", first.hello(0), "drop retired_nonce"},
                         {"the second run's FIRST", after[0], "0.0 message 1 packet 0"},
                         {"its middle", after[1], "0.0 message 1 packet 1"}});
  EXPECT_EQ(fixture.incarnations().session_of(0), kSession + 1);
  EXPECT_EQ(fixture.incarnations().incarnation_of(0), (Incarnation{1, kNonce + 1}));
}

TEST(Incarnation, ANewerEpochEndsTheOlder) {
  RingJob job({.world = 2});
  ClassifierFixture fixture({job.ring()});
  fixture.admit(job);
  const auto before = job.message(0, 1, three_packets());
  const RingJob old = job;
  job.restart(7);
  fixture.admit(job);
  expect_steps(fixture, {{"the old job's FIRST", before[0], "drop wrong_epoch"},
                         {"its middle", before[1], "drop dead_connection"},
                         {"its hello", old.hello(0), "drop old_epoch"},
                         {"a middling epoch", hello_of_run(old, 0, 6, 0x777), "drop old_epoch"},
                         {"another run of this one", hello_of_run(old, 0, 7, 0x777), "waits 0.0"}});
}

TEST(Incarnation, HellosOfDifferentRunsDoNotMeet) {
  RingJob job({.world = 2});
  ClassifierFixture fixture({job.ring()});
  expect_steps(fixture, {{"one run", hello_of_run(job, 0, 1, 5), "waits 0.0"},
                         {"another nonce", hello_of_run(job, 1, 1, 6), "waits 0.1"},
                         {"another epoch", hello_of_run(job, 1, 2, 5), "waits 0.1"},
                         {"the same run", hello_of_run(job, 1, 1, 5),
                          "begins 0, gave up hello_given_up, gave up hello_given_up"}});
}

TEST(Incarnation, MayBeginOnTheSameQps) {
  RingJob job({.world = 2});
  ClassifierFixture fixture({job.ring()});
  fixture.admit(job);
  const auto old = job.message(0, 1, three_packets());
  ASSERT_EQ(fixture.classify(old[0]), "0.0 message 1 packet 0");
  const Built hello = hello_of_run(job, 0, 2, 9);
  expect_steps(fixture, {{"one hello changes nothing", hello, "waits 0.0"},
                         {"not even on its own connection", old[1],
                          "0.0 message 1 packet 1, gave up hello_overtaken"},
                         {"again", with_psn(hello, psn_of(hello) + 3), "waits 0.0"},
                         {"the other", hello_of_run(job, 1, 2, 9), "begins 0"},
                         {"nothing of the old history", old[1], "gap 0.0"}});
}

/// A packet that is no hello, or fewer than all ranks' hellos, changes nothing (protocol I11).
TEST(Incarnation, AForgedHeaderChangesNothing) {
  RingJob job({.world = 2});
  ClassifierFixture fixture({job.ring()});
  fixture.admit(job);
  const auto message = job.message(0, 1, three_packets());
  const Built newest = poked(message[0], test::kInaEpochAt, 0xffffffff);
  expect_steps(fixture, {{"data of the last epoch", newest, "drop wrong_epoch"},
                         {"a hello of it", hello_of_run(job, 0, 0xffffffff, 9), "waits 0.0"},
                         {"the ring goes on", job.message(1, 1, three_packets())[0],
                          "0.1 message 1 packet 0"},
                         {"on the same connection, too", message[0], "0.0 message 1 packet 0"}});
  job.restart(2);
  fixture.admit(job);
  EXPECT_EQ(fixture.incarnations().incarnation_of(0), (Incarnation{2, kNonce + 1}));
}

TEST(Incarnation, NothingComesAfterTheLastEpoch) {
  RingJob job({.world = 2, .epoch = 0xffffffff});
  ClassifierFixture fixture({job.ring()});
  fixture.admit(job);
  EXPECT_EQ(fixture.classify(hello_of_run(job, 0, 0, 9)), "drop old_epoch");
  fixture.admit([&] {
    job.restart(0xffffffff); // but another run of this epoch
    return job;
  }());
}

TEST(Incarnation, HellosOfOneRunAgree) {
  RingJob job({.world = 3});
  ClassifierFixture fixture({job.ring()});
  const Built minimum = poked_byte(job.hello(1), test::kInaOperationAt, 1);
  const Built floats = poked_byte(job.hello(1), test::kInaTypeAt, 0);
  expect_steps(fixture,
               {{"sum of i32", job.hello(0), "waits 0.0"},
                {"min", minimum, "drop disagree_operation"},
                {"f32", floats, "drop disagree_type"},
                {"neither waits: no conflict", job.hello(1), "waits 0.1"},
                {"another run may differ", poked(minimum, test::kInaSessionAt, 9), "waits 0.1"},
                {"all", job.hello(2), "begins 0, gave up hello_given_up"}});
}

// ---- Waiting. ----

struct BehindRow {
  const char* description;
  std::function<Built(RingJob&)> frame;
  const char* expected;
};

/// A hello of epoch 1 waits on rank 0's connection.
const std::vector<BehindRow> kBehind{
    {"the hello itself", [](RingJob& j) { return j.hello(0); }, "drop repeat_held"},
    {"on another QP", [](RingJob& j) { return with_qp(j.hello(0), 0x999); }, "drop hello_conflict"},
    {"at a PSN in front", [](RingJob& j) { return at_hello(j, j.hello(0), -1); },
     "drop hello_conflict"},
    {"at a PSN behind", [](RingJob& j) { return at_hello(j, j.hello(0), 1); },
     "waits 0.0, gave up hello_overtaken"},
    {"data behind", [](RingJob& j) { return j.message(0, 1, three_packets())[0]; },
     "drop no_connection, gave up hello_overtaken"},
    {"a middle", [](RingJob& j) { return j.message(0, 1, three_packets())[1]; },
     "drop unclassified, gave up hello_overtaken"},
    {"a plain message", [](RingJob& j) { return at_hello(j, plain(j, 0, kOnly), 1); },
     "forward, gave up hello_overtaken"},
    {"a READ", [](RingJob& j) { return at_hello(j, plain(j, 0, 0x0c), 1); },
     "forward, gave up hello_overtaken"},
    {"far behind", [](RingJob& j) { return at_hello(j, plain(j, 0, kOnly), 0x7fffff); },
     "forward, gave up hello_overtaken"},
    {"in front", [](RingJob& j) { return at_hello(j, plain(j, 0, kOnly), -1); }, "forward"},
    {"half the numbers away", [](RingJob& j) { return at_hello(j, plain(j, 0, kOnly), 0x800000); },
     "forward"},
    {"an ACK", [](RingJob& j) { return at_hello(j, plain(j, 0, 0x11), 1); }, "forward"},
    {"on another QP", [](RingJob& j) { return with_qp(at_hello(j, plain(j, 0, kOnly), 1), 0x999); },
     "forward"},
    {"with a bad ICRC",
     [](RingJob& j) { return damaged(j.message(0, 1, three_packets())[1], 100); },
     "drop unclassified"},
    {"a FIRST with a bad ICRC",
     [](RingJob& j) { return damaged(j.message(0, 1, three_packets())[0], 200); }, "drop bad_icrc"},
    {"data of another epoch",
     [](RingJob& j) { return poked(j.message(0, 1, three_packets())[0], test::kInaEpochAt, 2); },
     "drop no_connection"},
    {"another epoch's hello", [](RingJob& j) { return at_hello(j, hello_of_run(j, 0, 2, 9), 1); },
     "waits 0.0"},
    {"another run's hello", [](RingJob& j) { return at_hello(j, hello_of_run(j, 0, 1, 9), 1); },
     "waits 0.0, gave up hello_overtaken"},
    {"a foreign header of another epoch",
     [](RingJob& j) {
       const Built data = j.message(0, 1, three_packets())[0];
       return poked(poked(data, test::kInaRingAt, 77), test::kInaEpochAt, 2);
     },
     "drop unannounced"},
};

TEST(Incarnation, APacketBehindAWaitingHelloTakesItOut) {
  for (const BehindRow& row : kBehind) {
    RingJob job({.world = 2});
    ClassifierFixture fixture({job.ring()});
    ASSERT_EQ(fixture.classify(job.hello(0)), "waits 0.0");
    const std::string answer = fixture.classify(row.frame(job));
    EXPECT_EQ(answer, row.expected) << row.description;
    const bool is_out = answer.find("overtaken") != std::string::npos;
    const bool has_another = answer.starts_with("waits");
    EXPECT_EQ(fixture.incarnations().waiting_hellos(), (is_out ? 0u : 1u) + (has_another ? 1u : 0u))
        << row.description;
  }
}

/// Nor what looks like it: a stranger need only know its addresses and its queue pair's number.
TEST(Incarnation, APacketByAnotherPortTakesNoWaitingHelloOut) {
  for (const BehindRow& row : kBehind) {
    RingJob job({.world = 2});
    ClassifierFixture fixture({job.ring()});
    ASSERT_EQ(fixture.classify(job.hello(0), 1), "waits 0.0");
    const std::string answer = fixture.classify(row.frame(job), 2);
    EXPECT_EQ(answer.find("overtaken"), std::string::npos) << row.description << ": " << answer;
    EXPECT_EQ(fixture.classify(job.hello(0), 1), "drop repeat_held") << row.description;
  }
}

TEST(Incarnation, FalseHellosByAnotherPortDoNotPushARanksOut) {
  RingJob job({.world = 2});
  ClassifierFixture fixture({job.ring()});
  ASSERT_EQ(fixture.classify(job.hello(0), 1), "waits 0.0");
  for (std::uint32_t nonce = 1; nonce <= 100; ++nonce) {
    fixture.classify(hello_of_run(job, 0, 0xffffffff, nonce), 2);
  }
  EXPECT_EQ(fixture.classify(job.hello(0), 1), "drop repeat_held");
  EXPECT_TRUE(fixture.classify(job.hello(1), 3).starts_with("begins 0")) << "its run begins";
}

// ---- Rings that are made for one run. ----

TEST(MadeRing, TakesHellosOfItsRunAlone) {
  RingJob job({.world = 3});
  ring::RingSpec made = job.ring();
  made.nonce = kNonce;
  ClassifierFixture fixture({made});
  for (const std::uint32_t epoch : {1U, 2U, 0xffffffffU}) {
    for (const std::uint32_t nonce :
         {1U, kNonce - 1, kNonce + 1, kNonce ^ 0x80000000, UINT32_MAX}) {
      for (std::uint16_t rank = 0; rank < 3; ++rank) { // all of them, by one port
        EXPECT_EQ(fixture.classify(hello_of_run(job, rank, epoch, nonce), 9), "drop wrong_nonce");
      }
    }
  }
  EXPECT_EQ(fixture.classify(hello_of_run(job, 0, 1, 0), 9), "drop bad_nonce");
  EXPECT_EQ(fixture.incarnations().incarnation_of(0), std::nullopt);
  const auto data = job.message(0, 1, three_packets());
  fixture.admit(job);
  EXPECT_EQ(fixture.incarnations().incarnation_of(0), (Incarnation{1, kNonce}));
  for (std::uint16_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(fixture.classify(hello_of_run(job, rank, 0xffffffff, kNonce + 1)),
              "drop wrong_nonce");
  }
  EXPECT_EQ(fixture.classify(data[0]), "0.0 message 1 packet 0") << "its run goes on";
}

TEST(MadeRing, ServesOneRun) {
  RingJob job({.world = 2});
  ring::RingSpec made = job.ring();
  made.nonce = kNonce;
  ClassifierFixture fixture({made});
  fixture.admit(job);
  fixture.incarnations().reset(0);
  EXPECT_EQ(fixture.classify(job.hello(0)), "drop retired_nonce");
  job.restart(2);
  EXPECT_EQ(fixture.classify(job.hello(0)), "drop wrong_nonce")
      << "another run asks for another ring";
}

TEST(Incarnation, ARanksFifthHelloPushesItsOldestOut) {
  RingJob job({.world = 2});
  ClassifierFixture fixture({job.ring()});
  for (std::uint32_t nonce = 1; nonce <= 4; ++nonce) {
    EXPECT_EQ(fixture.classify(hello_of_run(job, 0, 1, nonce)), "waits 0.0");
  }
  expect_steps(fixture,
               {{"a fifth", hello_of_run(job, 0, 1, 5), "waits 0.0, gave up hello_displaced"},
                {"the second is there", hello_of_run(job, 0, 1, 2), "drop repeat_held"},
                {"the first is not", hello_of_run(job, 1, 1, 1), "waits 0.1"},
                {"it comes again", hello_of_run(job, 0, 1, 1),
                 "begins 0, gave up hello_displaced, gave up hello_given_up, gave up "
                 "hello_given_up, gave up hello_given_up"}});
}

TEST(Incarnation, SixteenNoncesStayRetired) {
  RingJob job({.world = 2});
  ClassifierFixture fixture({job.ring()});
  const auto run = [&](std::uint32_t nonce) {
    job.restart(1);
    job.spec().nonce = nonce;
    fixture.admit(job);
  };
  for (std::uint32_t nonce = 1; nonce <= 17; ++nonce) { // 1 .. 16 are over afterwards
    run(nonce);
  }
  for (std::uint32_t nonce = 1; nonce <= 16; ++nonce) {
    EXPECT_EQ(fixture.classify(hello_of_run(job, 0, 1, nonce)), "drop retired_nonce") << nonce;
    EXPECT_EQ(fixture.classify(hello_of_run(job, 0, 2, nonce)), "drop retired_nonce") << nonce;
  }
  run(18);
  EXPECT_EQ(fixture.classify(hello_of_run(job, 0, 1, 1)), "waits 0.0") << "forgotten by now";
  EXPECT_EQ(fixture.classify(hello_of_run(job, 0, 1, 2)), "drop retired_nonce");
}

// ---- Resets, withdrawals. ----

TEST(Incarnation, AResetForgetsTheEpochAndRetiresTheRun) {
  RingJob job({.world = 2, .epoch = 9});
  ClassifierFixture fixture({job.ring()});
  fixture.admit(job);
  const auto message = job.message(0, 1, three_packets());
  ASSERT_EQ(fixture.classify(message[0]), "0.0 message 1 packet 0");
  ASSERT_EQ(fixture.classify(hello_of_run(job, 1, 9, 5)), "waits 0.1");
  fixture.incarnations().reset(0);
  EXPECT_EQ(fixture.take_given_up(), ", gave up ring_reset");
  EXPECT_FALSE(fixture.incarnations().status_of(0, 0).connected);
  expect_steps(fixture, {{"the middle of its messages", message[1], "drop dead_connection"},
                         {"their start", message[0], "drop no_connection"},
                         {"a late hello", job.hello(0), "drop retired_nonce"},
                         {"an older epoch's", hello_of_run(job, 0, 3, 4), "waits 0.0"},
                         {"of both", hello_of_run(job, 1, 3, 4), "begins 0"}});
}

TEST(Incarnation, AResetBeforeAnyClosesNothing) {
  RingJob job({.world = 2});
  ClassifierFixture fixture({job.ring()});
  ASSERT_EQ(fixture.classify(job.hello(0)), "waits 0.0");
  fixture.incarnations().reset(0);
  EXPECT_EQ(fixture.take_given_up(), ", gave up ring_reset");
  fixture.admit(job);
}

TEST(Incarnation, AWithdrawnRingIsUnknownAndItsConnectionsDead) {
  RingJob job({.world = 2});
  ClassifierFixture fixture({job.ring()});
  fixture.admit(job);
  const auto message = job.message(0, 1, three_packets());
  const auto other = job.message(1, 1, three_packets());
  ASSERT_EQ(fixture.classify(message[0]), "0.0 message 1 packet 0");
  ASSERT_EQ(fixture.classify(hello_of_run(job, 1, 9, 5)), "waits 0.1");
  fixture.withdraw(0);
  EXPECT_EQ(fixture.take_given_up(), ", gave up ring_withdrawn");
  expect_steps(fixture, {{"the rest of its message", message[1], "drop dead_connection"},
                         {"its repeat", message[0], "drop unannounced"},
                         {"its next", other[0], "drop unannounced"},
                         {"its hello", job.hello(0), "drop dead_connection"},
                         {"never guess", with_qp(message[1], 0x999), "drop unclassified"},
                         {"a hello on a new QP is somebody else's", with_qp(job.hello(0), 0x999),
                          "forward unknown_ring"}});
}

// ---- Queue pairs that come and go. ----

TEST(Incarnation, AQpThatGoesToAnotherRingLeavesItsOwn) {
  RingJob one({.ring = 1, .world = 2});
  RingJob two({.ring = 2, .world = 2, .session = kSession + 1}); // the same hosts and QPs
  ClassifierFixture fixture({one.ring(), two.ring()});
  fixture.admit(one);
  const auto old = one.message(0, 1, three_packets());
  fixture.admit(two);
  EXPECT_FALSE(fixture.incarnations().status_of(0, 0).connected);
  EXPECT_TRUE(fixture.incarnations().status_of(1, 0).connected);
  const auto message = two.message(0, 1, three_packets());
  EXPECT_EQ(fixture.classify(old[0]), "drop no_connection");
  EXPECT_EQ(fixture.classify(message[0]), "1.0 message 1 packet 0");
  fixture.incarnations().reset(0); // must not change the QP, which is now ring 2's
  EXPECT_EQ(fixture.classify(message[1]), "1.0 message 1 packet 1");
}

TEST(Incarnation, TwoRingsOfTheSameHostsKeepApart) {
  RingJob one({.ring = 1, .world = 3, .first_qp = 0x100});
  RingJob two({.ring = 2, .world = 3, .epoch = 40, .session = kSession + 1, .first_qp = 0x200});
  ClassifierFixture fixture({one.ring(), two.ring()});
  fixture.admit(one);
  fixture.admit(two);
  const auto message = one.message(0, 1, three_packets());
  EXPECT_EQ(fixture.classify(message[0]), "0.0 message 1 packet 0");
  EXPECT_EQ(fixture.classify(two.message(0, 1, three_packets())[0]), "1.0 message 1 packet 0");
  EXPECT_EQ(fixture.classify(message[2]), "0.0 message 1 packet 2");
  two.restart(41);
  fixture.admit(two);
  EXPECT_EQ(fixture.classify(message[1]), "0.0 message 1 packet 1");
  EXPECT_EQ(fixture.incarnations().incarnation_of(0)->epoch, 1u);
  EXPECT_EQ(fixture.incarnations().session_of(1), kSession + 2);
}

// ---- Ageing. ----

TEST(Connections, ALiveOneTurnsPlainOnlyAfterSilence) {
  RingJob job({.world = 2});
  ClassifierFixture fixture({job.ring()});
  fixture.admit(job);
  const auto message = job.message(0, 1, three_packets());
  ASSERT_EQ(fixture.classify(message[0]), "0.0 message 1 packet 0");
  expect_steps(fixture, {{"plain, at once", plain(job, 0, kOnly), "interleaves 0.0"},
                         {"it is live", message[1], "0.0 message 1 packet 1"}});
  fixture.now += kAging;
  expect_steps(fixture, {{"plain, as late as it may be", plain(job, 0, kOnly), "interleaves 0.0"},
                         {"it is live", message[1], "0.0 message 1 packet 1"}});
  fixture.now += kAging + 1;
  fixture.holds = {{0, 0}};
  expect_steps(fixture,
               {{"plain, but a slot has its packet", plain(job, 0, kOnly), "interleaves 0.0"},
                {"it is live", message[1], "0.0 message 1 packet 1"}});
  fixture.now += 10 * kAging;
  fixture.holds = {{0, 1}};
  expect_steps(fixture, {{"silence alone does not end it", message[1], "0.0 message 1 packet 1"}});
  fixture.now += kAging + 1;
  expect_steps(fixture, {{"plain, and silent for longer", plain(job, 0, kFirst), "forward"},
                         {"it is plain", plain(job, 0, kMiddle), "forward"},
                         {"the ring's message", message[0], "drop no_connection"}});
  EXPECT_FALSE(fixture.incarnations().status_of(0, 0).connected);
  EXPECT_TRUE(fixture.incarnations().status_of(0, 1).connected);
}

TEST(Connections, ADeadOneTurnsPlainFromItsOwnPortAlone) {
  RingJob job({.world = 2});
  ClassifierFixture fixture({job.ring()});
  fixture.admit(job); // by port 0
  fixture.incarnations().reset(0);
  const Built middle = plain(job, 0, kMiddle);
  EXPECT_EQ(fixture.classify(plain(job, 0, kFirst), 3), "drop wrong_port");
  EXPECT_EQ(fixture.classify(middle), "drop dead_connection");
  EXPECT_EQ(fixture.classify(plain(job, 0, kFirst), 0), "forward");
  EXPECT_EQ(fixture.classify(middle), "forward");
  EXPECT_EQ(fixture.classify(plain(job, 1, kMiddle)), "drop dead_connection") << "another's news";
}

struct DeadAge {
  std::uint8_t ack_timeout;
  std::uint64_t milliseconds; // 16 x 4.096 us x 2^x; an hour if not given
};

TEST(Connections, DeadOnesAgeAfterSixteenAckTimeouts) {
  for (const auto& [ack_timeout, milliseconds] :
       {DeadAge{0, 3'600'000}, DeadAge{1, 268}, DeadAge{11, 268}, DeadAge{12, 268},
        DeadAge{13, 536}, DeadAge{20, 68'719}, DeadAge{31, 140'737'488}}) {
    RingJob job({.world = 2});
    ClassifierFixture fixture({job.ring()});
    for (std::uint16_t rank = 0; rank < 2; ++rank) {
      fixture.classify(poked_byte(job.hello(rank), test::kInaAckTimeoutAt, ack_timeout));
    }
    fixture.incarnations().reset(0);
    const Built middle = plain(job, 0, kMiddle);
    fixture.now += milliseconds;
    EXPECT_EQ(fixture.classify(middle), "drop dead_connection") << int{ack_timeout};
    fixture.now += milliseconds; // since its last packet
    EXPECT_EQ(fixture.classify(middle), "drop dead_connection") << int{ack_timeout};
    fixture.now += milliseconds + 1;
    EXPECT_EQ(fixture.classify(middle), "drop unclassified") << int{ack_timeout};
  }
}

/// A message of the old run counts as a packet of the connection.
TEST(Connections, MessagesOfAnOldRunKeepItsConnectionDead) {
  RingJob job({.world = 2});
  ClassifierFixture fixture({job.ring()});
  fixture.admit(job);
  const auto message = job.message(0, 1, three_packets());
  fixture.incarnations().reset(0);
  fixture.now += 3'600'000;
  ASSERT_EQ(fixture.classify(message[0]), "drop no_connection");
  fixture.now += 3'600'000;
  EXPECT_EQ(fixture.classify(message[1]), "drop dead_connection");
}

TEST(Connections, AreNotRevivedByAHelloThatWaits) {
  RingJob job({.world = 2});
  ClassifierFixture fixture({job.ring()});
  fixture.admit(job);
  fixture.incarnations().reset(0);
  const Built hello = hello_of_run(job, 0, 2, 9);
  expect_steps(fixture, {{"the dead connection's own rank", hello, "waits 0.0"},
                         {"is dead still", at_hello(job, plain(job, 0, kMiddle), -5),
                          "drop dead_connection"},
                         {"the other's", hello_of_run(job, 1, 2, 9), "begins 0"},
                         {"live", hello, "0.0 message 0 packet 0"}});
}

TEST(Connections, AStateAgesWhileAHelloWaits) {
  RingJob job({.world = 2});
  ClassifierFixture fixture({job.ring()});
  expect_steps(fixture,
               {{"a hello", job.hello(0), "waits 0.0"},
                {"plain, in front of it", at_hello(job, plain(job, 0, kOnly), -9), "forward"}});
  fixture.now += kAging;
  expect_steps(fixture, {{"its end", at_hello(job, plain(job, 0, kLast), -8), "forward"}});
  fixture.now += kAging + 1;
  expect_steps(fixture, {{"the end of who knows what", at_hello(job, plain(job, 0, kLast), -7),
                          "drop unclassified"},
                         {"the hello is there", job.hello(0), "drop repeat_held"},
                         {"the other's", job.hello(1), "begins 0"}});
}

} // namespace
} // namespace weir::conn::classify_hello_test
