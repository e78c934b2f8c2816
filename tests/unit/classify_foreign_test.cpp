// SPDX-License-Identifier: BSD-3-Clause

/// docs/protocol.md §3, "Belonging" and "The magic": headers between neighbours for rings that are
/// not on this switch.

#include "classifier_fixture.hpp"

namespace weir::conn::classify_foreign_test {
namespace {

using test::Built;
using test::FrameSpec;
using test::kNonce;
using test::kSession;
using test::RingJob;

// ---- Belonging. ----

/// A foreign header never changes a ring, whatever its other fields are.
TEST(Foreign, ImpostorsChangeNothing) {
  RingJob job({.world = 3});
  ClassifierFixture fixture({job.ring()});
  fixture.admit(job);
  const Built hello = poked(poked(job.hello(0), test::kInaEpochAt, 9), test::kInaSessionAt, 7);
  const std::vector<Step> impostors{
      {"ring", poked(hello, test::kInaRingAt, 77), "interleaves 0.0 unknown_ring"},
      {"version 1", poked_byte(hello, test::kInaVersionAt, 1), "interleaves 0.0 unknown_version"},
      {"version 4", poked_byte(hello, test::kInaVersionAt, 4), "interleaves 0.0 unknown_version"},
      {"world above", poked(hello, test::kInaRankAt, 0x00000004), "interleaves 0.0 world_mismatch"},
      {"world below", poked(hello, test::kInaRankAt, 0x00000002), "interleaves 0.0 world_mismatch"},
      {"rank above", poked(hello, test::kInaRankAt, 0x00030003),
       "interleaves 0.0 rank_out_of_range"},
      {"rank 65535", poked(hello, test::kInaRankAt, 0xffff0003),
       "interleaves 0.0 rank_out_of_range"},
      {"another's rank", poked(hello, test::kInaRankAt, 0x00020003),
       "interleaves 0.0 source_mismatch"}};
  expect_steps(fixture, impostors);
  EXPECT_EQ(fixture.incarnations().waiting_hellos(), 0u);
  EXPECT_EQ(fixture.incarnations().incarnation_of(0), (Incarnation{1, kNonce}));
  EXPECT_EQ(fixture.classify(job.message(0, 1, three_packets())[0]), "0.0 message 1 packet 0");
}

TEST(Foreign, AHelloToAnotherThanTheSuccessor) {
  RingJob job({.world = 3});
  ring::RingSpec reversed = job.ring(); // rank 0's host also sends to rank 2's
  reversed.id = 2;
  std::swap(reversed.members[0], reversed.members[2]);
  ClassifierFixture fixture({job.ring(), reversed});
  FrameSpec frame = job.frame_of(0);
  frame.destination = job.ip_of(2);
  frame.opcode = kOnly;
  test::InaSpec ina = job.ina_of(0, 0, 0);
  ina.collective = 1;
  frame.payload = encode(ina);
  EXPECT_EQ(fixture.classify(build(frame)), "forward destination_mismatch");
}

// ---- The magic. ----

constexpr std::uint32_t kOtherRing = 77;

/// A ring of the same hosts that another switch may know. Its rank 0 sends from host 0 to host 1.
struct OtherRing {
  Built hello() const { return poked(job.hello(0), test::kInaRingAt, kOtherRing); }

  /// Another switch's answer to rank 0's host, from host 2.
  Built answer(std::uint32_t session = kSession) const {
    const Built named = poked(job.hello(2), test::kInaRingAt, kOtherRing);
    return as_answer(named, session);
  }

  static Built as_answer(const Built& hello, std::uint32_t session) {
    const Built numbered = poked(hello, test::kInaMessageAt, kNonce);
    return poked_byte(poked(numbered, test::kInaSessionAt, session), test::kInaFlagsAt, 1);
  }

  Built first() {
    return poked(job.message(0, 1, three_packets())[0], test::kInaRingAt, kOtherRing);
  }

  Built result() { return poked_byte(first(), test::kInaFlagsAt, 1); }

  Built middle() { return job.message(0, 1, three_packets())[1]; }

  RingJob job{{.world = 3}};
  ClassifierFixture fixture{{job.ring()}};
};

TEST(ForeignMagic, DataThatNoHelloAnnouncedGoesNowhere) {
  OtherRing other;
  expect_steps(other.fixture, {{"unknown QP", other.first(), "drop unannounced"},
                               {"its middle", other.middle(), "drop unclassified"},
                               {"even a result", other.result(), "drop unannounced"}});
}

TEST(ForeignMagic, AHelloAloneOpensNothing) {
  OtherRing other;
  expect_steps(other.fixture, {{"hello", other.hello(), "forward unknown_ring"},
                               {"the middle of a message", other.middle(), "drop unannounced"},
                               {"a READ", plain(other.job, 0, 0x0c), "drop unannounced"},
                               {"its FIRST", other.first(), "drop unannounced"},
                               {"hello again", other.hello(), "forward unknown_ring"},
                               {"and again", other.hello(), "forward unknown_ring"},
                               {"its FIRST", other.first(), "drop unannounced"},
                               {"its middle", other.middle(), "drop unannounced"}});
}

TEST(ForeignMagic, AnAnsweredHelloOpensItsConnection) {
  OtherRing other;
  expect_steps(other.fixture,
               {{"an answer to nothing", other.answer(), "forward unknown_ring"},
                {"hello", other.hello(), "forward unknown_ring"},
                {"data", other.first(), "drop unannounced"},
                {"hello", other.hello(), "forward unknown_ring"},
                {"the answer", other.answer(), "forward unknown_ring"},
                {"data", other.first(), "forward unknown_ring"},
                {"its middle", other.middle(), "forward"},
                {"another request", plain(other.job, 0, 0x0c), "forward"},
                {"another QP", with_qp(other.first(), 0x999), "drop unannounced"},
                {"another session", poked(other.first(), test::kInaSessionAt, kSession + 1),
                 "drop unannounced"},
                {"which bars it", other.middle(), "drop unannounced"}});
}

TEST(ForeignMagic, AnotherSwitchesResultPassesOnAnAnnouncedConnection) {
  OtherRing other;
  expect_steps(other.fixture, {{"hello", other.hello(), "forward unknown_ring"},
                               {"result", other.result(), "forward unknown_ring"},
                               {"the rest", other.middle(), "forward"}});
}

TEST(ForeignMagic, RefusedDataBarsUntilAPlainMessage) {
  OtherRing other;
  expect_steps(other.fixture, {{"plain", plain(other.job, 0, kOnly), "forward"},
                               {"the magic makes nothing plain", other.first(), "drop unannounced"},
                               {"nor leaves it so", other.middle(), "drop unannounced"},
                               {"a READ there", plain(other.job, 0, 0x0c), "drop unannounced"},
                               {"plain", plain(other.job, 0, kFirst), "forward"},
                               {"plain again", plain(other.job, 0, kMiddle), "forward"}});
}

TEST(ForeignMagic, ALiveConnectionStaysLive) {
  OtherRing other;
  other.fixture.admit(other.job);
  const auto message = other.job.message(0, 1, three_packets());
  expect_steps(other.fixture, {{"own data", message[0], "0.0 message 1 packet 0"},
                               {"a foreign hello", other.hello(), "interleaves 0.0 unknown_ring"},
                               {"own data", message[1], "0.0 message 1 packet 1"},
                               {"foreign data", other.first(), "drop unannounced"},
                               {"own data", message[2], "0.0 message 1 packet 2"}});
}

TEST(ForeignMagic, ADeadConnectionStaysDead) {
  OtherRing other;
  other.fixture.admit(other.job);
  other.fixture.incarnations().reset(0);
  expect_steps(other.fixture, {{"a foreign hello", other.hello(), "drop dead_connection"},
                               {"foreign data", other.first(), "drop unannounced"},
                               {"a middle", other.middle(), "drop dead_connection"}});
}

TEST(ForeignMagic, ForeignConnectionsAgeWhenSilent) {
  OtherRing other;
  expect_steps(other.fixture, {{"hello", other.hello(), "forward unknown_ring"},
                               {"answer", other.answer(), "forward unknown_ring"},
                               {"data", other.first(), "forward unknown_ring"}});
  other.fixture.now += kAging;
  expect_steps(other.fixture, {{"not yet", other.middle(), "forward"}});
  other.fixture.now += kAging + 1;
  expect_steps(other.fixture, {{"forgotten", other.middle(), "drop unclassified"},
                               {"and its hello", other.first(), "drop unannounced"}});
}

/// Otherwise a ring withdrawn during a message would let raw data through.
TEST(ForeignMagic, AWithdrawnRingsDataNeedsAnotherSwitch) {
  OtherRing other;
  RingJob& job = other.job;
  other.fixture.admit(job);
  other.fixture.withdraw(0);
  const auto again = [](const Built& frame) { return with_qp(frame, 0x999); };
  const auto message = job.message(0, 1, three_packets());
  const Built answer = OtherRing::as_answer(with_qp(job.hello(2), 0x998), kSession);
  expect_steps(other.fixture, {{"a hello on a new QP", again(job.hello(0)), "forward unknown_ring"},
                               {"raw data", again(message[0]), "drop unannounced"},
                               {"answered elsewhere", answer, "forward unknown_ring"},
                               {"hello", again(job.hello(0)), "forward unknown_ring"},
                               {"data", again(message[0]), "forward unknown_ring"},
                               {"on the old QP never", message[1], "drop dead_connection"}});
}

TEST(ForeignMagic, HoldsAgainstARingsDirectionToo) {
  OtherRing other;
  const RingJob& job = other.job;
  const auto back = [&](const Built& frame) { return backwards(job, frame); };
  expect_steps(other.fixture, {{"an ACK", back(plain(job, 0, 0x11)), "forward"},
                               {"a plain middle", back(plain(job, 0, kMiddle)), "forward"},
                               {"data with the magic", back(other.first()), "drop unannounced"},
                               {"its middle", back(other.middle()), "drop unannounced"},
                               {"an ACK still", back(plain(job, 0, 0x11)), "forward"},
                               {"plain", back(plain(job, 0, kOnly)), "forward"},
                               {"its middle", back(other.middle()), "forward"}});
}

} // namespace
} // namespace weir::conn::classify_foreign_test
