// SPDX-License-Identifier: BSD-3-Clause

/// The job's ranks over sockets whose other ends the test has: which ranks errors name while ranks
/// close.

#include "host/bootstrap/control_note.hpp"
#include "host/bootstrap/job_control.hpp"
#include "support/comes_true.hpp"
#include "support/stream_pair.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace weir::host {
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
} // namespace weir::host
