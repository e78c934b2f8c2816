// SPDX-License-Identifier: BSD-3-Clause

/// The job's ranks over sockets whose other ends the test has: which ranks errors name while ranks
/// close.

#include "host/base/control_note.hpp"
#include "host/control/job_control.hpp"
#include "support/comes_true.hpp"
#include "support/stream_pair.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace weir::host::job_control_test {
namespace {

using std::chrono::milliseconds;
using test::Stream;
using test::stream_pair;

const Error kStandstill(ErrorCode::timeout, std::nullopt, "nothing moved");
constexpr Suspicion::Kind kBroken = Suspicion::Kind::broken;

/// A rank says that it makes no more calls.
void leave(FramedStream& stream, std::uint64_t calls_made) {
  stream.send(code(ControlKind::leave), bytes_of(LeaveBody{wire::be64(calls_made)}));
}

/// The error that poll() throws within three seconds.
std::optional<Error> error_of(JobControl& control) {
  const Deadline deadline = Clock::now() + std::chrono::seconds(3);
  while (Clock::now() < deadline) {
    try {
      control.poll({});
    } catch (const Error& error) {
      return error;
    }
    std::this_thread::sleep_for(milliseconds(1));
  }
  return std::nullopt;
}

TEST(JobControl, ARankThatHasClosedIsNotAskedForAnAnswer) {
  std::vector<Stream> own(3);
  std::vector<Stream> others(3);
  for (const std::size_t rank : {1U, 2U}) {
    std::tie(own[rank], others[rank]) = stream_pair();
  }
  JobControl rank_0(0, 3, Patience{}, std::move(own));
  leave(*others[1], 0);
  rank_0.poll({});
  rank_0.suspect(kBroken, kStandstill);
  others[1].reset();
  const std::optional<Error> error = error_of(rank_0);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->rank(), 2) << error->what();
  EXPECT_TRUE(std::string(error->what()).starts_with("no answer from rank 2:")) << error->what();
}

TEST(JobControl, ARank0ThatHasClosedIsNotTakenForAStoppedOne) {
  std::vector<Stream> own(2);
  Stream rank_0;
  std::tie(own[0], rank_0) = stream_pair();
  JobControl rank_1(1, 2, Patience{}, std::move(own));
  leave(*rank_0, 0);
  rank_0.reset();
  rank_1.poll({});
  rank_1.suspect(kBroken, kStandstill);
  const std::optional<Error> error = error_of(rank_1);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::timeout);
  EXPECT_EQ(error->rank(), std::nullopt) << error->what();
  EXPECT_TRUE(std::string(error->what()).starts_with("nothing moved; rank 0 is done"))
      << error->what();
}

TEST(JobControl, CallsAfterRank0ClosedSaySo) {
  std::vector<Stream> own(3);
  Stream rank_0;
  std::tie(own[0], rank_0) = stream_pair();
  JobControl rank_1(1, 3, Patience{}, std::move(own));
  leave(*rank_0, 0);
  rank_0.reset();
  rank_1.poll({});
  for (std::uint64_t call = 1; call < 3; ++call) {
    rank_1.note_call({.sequence = call, .count = 100});
    try {
      rank_1.poll({});
      ADD_FAILURE() << "call " << call << " may begin without rank 0";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::peer_died);
      EXPECT_EQ(error.rank(), 0) << error.what();
    }
  }
}

/// Its result may still be on its way to us.
TEST(JobControl, ACallThatRank0MadeBeforeItLeftMayEnd) {
  std::vector<Stream> own(2);
  Stream rank_0;
  std::tie(own[0], rank_0) = stream_pair();
  JobControl rank_1(1, 2, Patience{}, std::move(own));
  leave(*rank_0, 1);
  rank_1.note_call({.sequence = 1, .count = 100});
  rank_1.note_call({.sequence = 2, .count = 100});
  EXPECT_NO_THROW(rank_1.poll({.calls_done = 0}));
  EXPECT_THROW(rank_1.poll({.calls_done = 1}), Error);
}

TEST(JobControl, ARankThatLeavesStaysForItsFarewellTimeAtMost) {
  std::vector<Stream> own(2);
  Stream rank_0;
  std::tie(own[0], rank_0) = stream_pair();
  const Patience patience{.timeout = milliseconds(600'000), .farewell = milliseconds(50)};
  JobControl rank_1(1, 2, patience, std::move(own));
  const auto start = Clock::now();
  rank_1.leave();
  EXPECT_FALSE(rank_1.may_close());
  EXPECT_TRUE(test::comes_true([&] { return rank_1.may_close(); }));
  EXPECT_GE(Clock::now() - start, milliseconds(50));
}

/// Rank 0 has found nobody to blame. The rank keeps waiting, and asks again after a while.
TEST(JobControl, PatienceEndsASuspicionButNotForEver) {
  std::vector<Stream> own(2);
  Stream rank_0;
  std::tie(own[0], rank_0) = stream_pair();
  JobControl rank_1(1, 2, Patience{}, std::move(own));
  EXPECT_TRUE(rank_1.may_suspect(Suspicion::Kind::standstill));
  rank_1.suspect(Suspicion::Kind::standstill, kStandstill);
  EXPECT_FALSE(rank_1.may_suspect(Suspicion::Kind::standstill)) << "it has asked";
  const std::string text = "rank 0 has not made call 7";
  rank_0->send(code(ControlKind::patience),
               {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  EXPECT_TRUE(test::comes_true([&] {
    rank_1.poll({});
    return rank_1.waits_for() == text;
  }));
  EXPECT_FALSE(rank_1.may_suspect(Suspicion::Kind::standstill)) << "it has just been answered";
  EXPECT_TRUE(test::comes_true([&] {
    rank_1.poll({}); // throws when the answer is overdue
    return rank_1.may_suspect(Suspicion::Kind::standstill);
  }));
  rank_1.poll({.bytes_done = 1});
  EXPECT_EQ(rank_1.waits_for(), "") << "something has moved";
}

/// A search for a late rank that finds none must not keep the ranks from suspecting a link.
TEST(JobControl, ASearchForALateRankLeavesSuspicionsAlone) {
  std::vector<Stream> own(2);
  Stream rank_1;
  std::tie(own[1], rank_1) = stream_pair();
  JobControl rank_0(0, 2, Patience{.lateness = milliseconds(300)}, std::move(own));
  rank_0.note_call({.sequence = 1, .count = 100});
  rank_0.note_call({.sequence = 2, .count = 100});
  rank_1->send(code(ControlKind::calls),
               bytes_of(NumberedCall{wire::be64(1), encode(Call{.sequence = 1, .count = 100})}));
  // Rank 1 stands in call 1, so it is not late for call 2.
  unsigned questions = 0;
  const Deadline end = Clock::now() + milliseconds(1500);
  while (Clock::now() < end) {
    rank_0.poll({.calls_done = 1});
    rank_1->read_available();
    while (const auto frame = rank_1->receive()) {
      EXPECT_NE(frame->kind, code(ControlKind::patience)) << "nobody has suspected anything";
      if (frame->kind == code(ControlKind::question)) {
        ++questions;
        rank_1->send(code(ControlKind::progress),
                     bytes_of(ProgressBody{wire::be64(1), wire::be64(0), wire::be64(0), 1}));
      }
    }
    EXPECT_TRUE(rank_0.may_suspect(Suspicion::Kind::broken));
    std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_GT(questions, 0U);
  EXPECT_LT(questions, 10U) << "one for each time that the limit is over";
  EXPECT_TRUE(rank_0.may_suspect(Suspicion::Kind::standstill));
}

/// Of a group that goes on.
TEST(JobControl, TellsTheOthersOfARegionsEnd) {
  std::vector<Stream> own_0(2);
  std::vector<Stream> own_1(2);
  std::tie(own_0[1], own_1[0]) = stream_pair();
  JobControl rank_0(0, 2, Patience{}, std::move(own_0));
  JobControl rank_1(1, 2, Patience{}, std::move(own_1));
  std::vector<EndedRegion> ended;
  rank_1.when_region_ends([&](const EndedRegion& region) { ended.push_back(region); });
  rank_0.tell({.number = 0x01020304, .why = "region 7 has ended: \x1b it was withdrawn"});
  for (const Deadline end = Clock::now() + milliseconds(10'000);
       ended.empty() && Clock::now() < end;) {
    rank_0.poll({});
    rank_1.poll({});
  }
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].number, 0x01020304U);
  EXPECT_EQ(ended[0].why, "region 7 has ended: \\x1b it was withdrawn") << "for terminals";
}

// ------------------------------------------------------------------- ranks that mean harm, or err

/// A rank under test, and the other ends of its connections.
struct JobControlFixture {
  /// Rank 0 has a connection to each other rank, the others have one to rank 0.
  JobControlFixture(std::uint16_t rank, std::uint16_t world) : others(world) {
    std::vector<Stream> own(world);
    for (std::uint16_t peer = 0; peer < world; ++peer) {
      if (peer != rank && (rank == 0 || peer == 0)) {
        std::tie(own[peer], others[peer]) = stream_pair();
      }
    }
    control.emplace(rank, world, Patience{}, std::move(own));
  }

  std::vector<Stream> others;
  std::optional<JobControl> control;
};

void send(const Stream& stream, std::uint8_t kind, std::size_t bytes = 0) {
  stream->send(kind, std::vector<std::uint8_t>(bytes));
}

/// The error that another rank was told.
std::optional<Error> told(const Stream& stream) {
  while (const std::optional<ControlFrame> frame = stream->receive()) {
    if (frame->kind == code(ControlKind::failed)) {
      return decode_error(frame->body, {0, 256});
    }
  }
  return std::nullopt;
}

std::size_t count_frames(const Stream& stream, ControlKind kind) {
  std::size_t count = 0;
  while (const std::optional<ControlFrame> frame = stream->receive()) {
    count += frame->kind == code(kind) ? 1 : 0;
  }
  return count;
}

void expect_condemned(const std::optional<Error>& error, std::uint16_t rank,
                      const std::string& text) {
  ASSERT_TRUE(error) << text;
  EXPECT_EQ(error->code(), ErrorCode::peer_died);
  EXPECT_EQ(error->rank(), rank);
  EXPECT_NE(std::string(error->what()).find(text), std::string::npos) << error->what();
}

/// Kinds by number, as docs of the protocol between ranks have them in control_note.hpp.
TEST(JobControl, WhoSendsWhatItMayNotCountsAsDead) {
  for (const int kind : {0, 1, 2, 3, 4, 5, 6, 7, 11, 13, 15, 16, 17, 18, 19, 255}) {
    JobControlFixture fixture(0, 3);
    send(fixture.others[1], static_cast<std::uint8_t>(kind));
    const std::string text = "rank 1 counts as dead: it sent a control frame of kind " +
                             std::to_string(kind) + ", which a rank but rank 0 may not send";
    expect_condemned(error_of(*fixture.control), 1, text);
    expect_condemned(told(fixture.others[2]), 1, text);
  }
  for (const int kind : {0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 14, 16, 17, 19, 255}) {
    JobControlFixture fixture(1, 3);
    send(fixture.others[0], static_cast<std::uint8_t>(kind));
    expect_condemned(error_of(*fixture.control), 0,
                     "rank 0 counts as dead: it sent a control frame of kind " +
                         std::to_string(kind) + ", which a rank 0 may not send");
  }
}

TEST(JobControl, WhoseFrameHasAnotherLengthCountsAsDead) {
  struct Row {
    std::uint8_t kind;
    std::vector<std::size_t> lengths;
  };

  const std::vector<Row> to_rank_0{{8, {0, 1, 21, 23, 21'999}},
                                   {9, {0, 3, 2005}},
                                   {10, {0, 7, 9}},
                                   {12, {0, 4, 2006}},
                                   {14, {0, 24, 26}}};
  const std::vector<Row> from_rank_0{{9, {0, 3, 2005}}, {10, {0, 7, 9}}, {11, {1}},
                                     {13, {1, 22'000}}, {15, {2001}},    {18, {0, 3, 2005}}};
  for (const std::uint16_t rank : {0, 1}) {
    for (const auto& [kind, lengths] : rank == 0 ? to_rank_0 : from_rank_0) {
      for (const std::size_t bytes : lengths) {
        JobControlFixture fixture(rank, 2);
        const auto peer = static_cast<std::uint16_t>(1 - rank);
        send(fixture.others[peer], kind, bytes);
        expect_condemned(error_of(*fixture.control), peer,
                         "kind " + std::to_string(kind) + " with " + std::to_string(bytes));
      }
    }
  }
}

TEST(JobControl, WhoseErrorHasNoKnownCodeCountsAsDead) {
  const std::string text = "rank 1 counts as dead: it sent an error of code 250; allowed: 0 .. 8";
  for (const auto& [kind, body] :
       {std::pair{ControlKind::failed, std::vector<std::uint8_t>{250, 1, 0, 2}},
        std::pair{ControlKind::suspect, std::vector<std::uint8_t>{1, 250, 1, 0, 2}}}) {
    JobControlFixture fixture(0, 3);
    fixture.others[1]->send(code(kind), body);
    expect_condemned(error_of(*fixture.control), 1, text);
    expect_condemned(told(fixture.others[2]), 1, text);
  }
}

/// 60000 is 0xea60.
TEST(JobControl, AnErrorAboutARankThatTheGroupDoesNotHaveIsAboutNone) {
  const std::vector<std::uint8_t> body{1, 1, 0xea, 0x60, 'x'};
  JobControlFixture fixture(0, 3);
  fixture.others[1]->send(code(ControlKind::failed), body);
  for (const std::optional<Error>& error : {error_of(*fixture.control), told(fixture.others[2])}) {
    ASSERT_TRUE(error);
    EXPECT_STREQ(error->what(), "x");
    EXPECT_EQ(error->rank(), std::nullopt);
  }
}

TEST(JobControl, AFrameLongerThanAnyIsNotKept) {
  JobControlFixture fixture(0, 3);
  send(fixture.others[1], code(ControlKind::calls), 22'001);
  const std::string text = "it sent a control frame of kind 8 with 22001 bytes; allowed: 22000";
  expect_condemned(error_of(*fixture.control), 1, text);
  expect_condemned(told(fixture.others[2]), 1, text);
}

/// It suspects without pause, so that all are asked and told again and again, and reads nothing.
TEST(JobControl, WhoDoesNotReadCountsAsDeadAndIsNamedToTheOthers) {
  constexpr std::size_t kLeastSent = 9; // bytes in each round: a question's
  const ProgressBody waits{wire::be64(1), wire::be64(0), wire::be64(0), 1}; // for rank 0's call
  std::vector<std::uint8_t> suspicion = encode(kStandstill);
  suspicion.insert(suspicion.begin(), 1);
  JobControlFixture fixture(0, 3);
  std::optional<Error> error;
  for (std::size_t round = 0; !error && round < 2 * FramedStream::kMostUnsent / kLeastSent;
       ++round) {
    fixture.others[1]->send(code(ControlKind::suspect), suspicion);
    fixture.others[1]->send(code(ControlKind::progress), bytes_of(waits));
    fixture.others[2]->send(code(ControlKind::progress), bytes_of(waits));
    count_frames(fixture.others[2], ControlKind::question); // it reads all
    try {
      fixture.control->poll({});
    } catch (const Error& thrown) {
      error = thrown;
    }
  }
  const std::string text = "it does not read: ";
  expect_condemned(error, 1, text);
  expect_condemned(told(fixture.others[2]), 1, text);
}

TEST(FramedStream, KeepsABoundedNumberOfBytesForWhoDoesNotRead) {
  constexpr std::size_t kBody = 10'000;
  const auto [ours, theirs] = stream_pair();
  for (int frame = 0; frame < 1000; ++frame) {
    send(ours, code(ControlKind::failed), kBody);
    EXPECT_LE(ours->unsent_bytes(), (std::size_t{1} << 20) + kBody + 9);
  }
  EXPECT_FALSE(ours->is_open());
  EXPECT_NE(ours->why_closed().find("bytes wait to be sent to it; allowed: 1048576"),
            std::string::npos)
      << ours->why_closed();
}

TEST(JobControl, AnswersAllQuestionsOfAPollOnce) {
  JobControlFixture fixture(1, 2);
  for (int question = 0; question < 10; ++question) {
    send(fixture.others[0], code(ControlKind::question));
  }
  fixture.control->poll({});
  EXPECT_EQ(count_frames(fixture.others[0], ControlKind::progress), 1U);
  fixture.control->poll({});
  EXPECT_EQ(count_frames(fixture.others[0], ControlKind::progress), 0U) << "nobody has asked";
}

TEST(JobControl, AnswersNobodyAgainWhileItsAnswerWaits) {
  constexpr std::size_t kQuestions = 100'000; // more answers than a socket takes
  JobControlFixture fixture(1, 2);
  for (std::size_t question = 0; question < kQuestions; ++question) {
    send(fixture.others[0], code(ControlKind::question));
    fixture.control->poll({});
  }
  const std::size_t taken = count_frames(fixture.others[0], ControlKind::progress);
  EXPECT_LT(taken, kQuestions / 2);
  std::size_t waiting = 0;
  for (int poll = 0; poll < 10; ++poll) {
    fixture.control->poll({});
    waiting += count_frames(fixture.others[0], ControlKind::progress);
  }
  EXPECT_GE(waiting, 1U) << "whoever asked last is answered in the end";
  EXPECT_LE(waiting, 2U) << "the one that waited, and one to all questions since";
}

TEST(JobControl, ReadsABoundedNumberOfFramesInAPoll) {
  JobControlFixture fixture(1, 2);
  for (int question = 0; question < 64; ++question) {
    send(fixture.others[0], code(ControlKind::question));
  }
  fixture.others[0]->send(code(ControlKind::failed), encode(kStandstill));
  EXPECT_NO_THROW(fixture.control->poll({}));
  EXPECT_TRUE(fixture.control->has_work());
  EXPECT_THROW(fixture.control->poll({}), Error);
}

/// A rank that has sent a flood and then died: all that it said counts before its end does.
TEST(JobControl, WhatADeadRankSaidIsReadFirst) {
  JobControlFixture fixture(1, 2);
  for (int question = 0; question < 100; ++question) {
    send(fixture.others[0], code(ControlKind::question));
  }
  fixture.others[0]->send(code(ControlKind::failed), encode(kStandstill));
  fixture.others[0].reset();
  const std::optional<Error> error = error_of(*fixture.control);
  ASSERT_TRUE(error);
  EXPECT_STREQ(error->what(), "nothing moved");
}

TEST(JobControl, CallsWaitAtHomeWhileRank0DoesNotRead) {
  constexpr std::uint64_t kCalls = 200'000; // 4.4 MB of them
  JobControlFixture fixture(1, 2);
  for (std::uint64_t call = 1; call <= kCalls; ++call) {
    fixture.control->note_call({.sequence = call, .count = 100});
    if (call % 1000 == 0) {
      EXPECT_NO_THROW(fixture.control->poll({}));
    }
  }
  std::size_t bytes = 0;
  EXPECT_TRUE(test::comes_true([&] {
    fixture.control->poll({});
    while (const std::optional<ControlFrame> frame = fixture.others[0]->receive()) {
      bytes += frame->body.size();
    }
    return bytes == kCalls * 22;
  })) << bytes;
  EXPECT_FALSE(fixture.control->has_work());
}

TEST(JobControl, HasRoomForABoundedNumberOfCallsThatRank0HasNotRead) {
  constexpr std::uint64_t kMost = 262'144;
  JobControlFixture fixture(1, 2);
  for (std::uint64_t call = 1; call <= kMost; ++call) {
    EXPECT_TRUE(fixture.control->has_room());
    fixture.control->note_call({.sequence = call, .count = 100});
  }
  EXPECT_FALSE(fixture.control->has_room());
  EXPECT_EQ(fixture.control->waits_for(), "rank 0 has not read 262144 calls");
  EXPECT_THROW(fixture.control->note_call({.sequence = kMost + 1, .count = 100}), Error);
  fixture.control->poll({});
  EXPECT_TRUE(fixture.control->has_room()) << "the connection has taken some";
  EXPECT_EQ(fixture.control->waits_for(), "");
}

TEST(JobControl, NamesWhoLeavesRank0NoRoomForCalls) {
  constexpr std::uint64_t kMost = 262'144;
  JobControlFixture fixture(0, 3);
  const NumberedCall first{wire::be64(1), encode(Call{.sequence = 1, .count = 100})};
  fixture.others[1]->send(code(ControlKind::calls), bytes_of(first));
  for (std::uint64_t call = 1; call <= kMost; ++call) {
    fixture.control->note_call({.sequence = call, .count = 100});
  }
  fixture.control->poll({});
  EXPECT_FALSE(fixture.control->has_room());
  EXPECT_EQ(fixture.control->waits_for(), "rank 2 has not made call 1");
  fixture.others[2]->send(code(ControlKind::calls), bytes_of(first));
  fixture.control->poll({});
  EXPECT_TRUE(fixture.control->has_room());
}

TEST(JobControl, ShowsTextsOfOthersPrintableAndCut) {
  JobControlFixture fixture(1, 2);
  const std::string text = "\x1b[2Jgone\nweir: all is well" + std::string(3000, 'x');
  std::vector<std::uint8_t> body{0, 0, 0, 0};
  body.insert(body.end(), text.begin(), text.begin() + 2000);
  fixture.others[0]->send(code(ControlKind::failed), body);
  const std::optional<Error> error = error_of(*fixture.control);
  ASSERT_TRUE(error);
  const std::string shown(error->what());
  EXPECT_TRUE(shown.starts_with("\\x1b[2Jgone\\x0aweir: all is wellxxx")) << shown;
  EXPECT_EQ(shown.size(), 2000U);
}

TEST(JobControl, ShowsForWhomItWaitsPrintable) {
  JobControlFixture fixture(1, 2);
  const std::string text = "rank 0\x07";
  fixture.others[0]->send(code(ControlKind::patience),
                          {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  fixture.control->poll({});
  EXPECT_EQ(fixture.control->waits_for(), "rank 0\\x07");
}

TEST(PeerText, IsCutBetweenTwoCharacters) {
  const std::string accented = "\u00e9"; // two bytes
  std::string text = "\x07" + std::string(1995, 'x') + accented;
  EXPECT_EQ(peer_text(text), "\\x07" + std::string(1995, 'x')) << "no half of it";
  text = std::string(1998, 'x') + accented;
  EXPECT_EQ(peer_text(text), text);
}

TEST(ErrorOnTheWire, IsCutToWhatOthersTake) {
  const std::vector<std::uint8_t> bytes =
      encode(Error(ErrorCode::timeout, std::nullopt, std::string(5000, 'x')));
  EXPECT_EQ(bytes.size(), 2004U);
  EXPECT_TRUE(may_have(ControlKind::failed, bytes.size()));
}

/// As when its process is stopped, or gets no CPU.
TEST(JobControl, APauseOfRank0IsNotTheOthersSilence) {
  std::vector<Stream> own(2);
  Stream rank_1;
  std::tie(own[1], rank_1) = stream_pair();
  JobControl rank_0(0, 2, Patience{.lateness = milliseconds(500)}, std::move(own));
  rank_0.note_call({.sequence = 1, .count = 100});
  rank_0.poll({});
  std::this_thread::sleep_for(milliseconds(600));
  rank_0.poll({});
  EXPECT_FALSE(rank_1->receive()) << "asked where it stays";
  std::optional<ControlFrame> question;
  EXPECT_TRUE(test::comes_true([&] {
    rank_0.poll({});
    question = rank_1->receive();
    return question.has_value();
  }));
  ASSERT_TRUE(question);
  EXPECT_EQ(question->kind, code(ControlKind::question));
}

} // namespace
} // namespace weir::host::job_control_test
