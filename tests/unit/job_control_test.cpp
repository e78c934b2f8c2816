// SPDX-License-Identifier: BSD-3-Clause

/// The job's ranks over sockets whose other ends the test has: which ranks errors name while ranks
/// close.

#include "host/bootstrap/control_note.hpp"
#include "host/bootstrap/job_control.hpp"
#include "support/comes_true.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <utility>
#include <vector>

namespace weir::host {
namespace {

using std::chrono::milliseconds;
using Stream = std::unique_ptr<FramedStream>;

/// Two ends of one connection.
std::pair<Stream, Stream> connection() {
  std::array<int, 2> ends{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const auto stream = [](int end) {
    return std::make_unique<FramedStream>(Socket([end] { return end; }));
  };
  return {stream(ends[0]), stream(ends[1])};
}

const Error kStandstill(ErrorCode::timeout, std::nullopt, "nothing moved");

/// The error that poll() throws within three seconds.
std::optional<Error> error_of(JobControl& control) {
  const Deadline deadline = Clock::now() + std::chrono::seconds(3);
  while (Clock::now() < deadline) {
    try {
      control.poll(0);
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
    std::tie(own[rank], others[rank]) = connection();
  }
  JobControl rank_0(0, 3, milliseconds(10'000), std::move(own));
  others[1]->send(code(ControlKind::leave), {});
  rank_0.poll(0);
  rank_0.suspect(kStandstill);
  others[1].reset();
  const std::optional<Error> error = error_of(rank_0);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->rank(), 2) << error->what();
  EXPECT_TRUE(std::string(error->what()).starts_with("no answer from rank 2:")) << error->what();
}

TEST(JobControl, ARank0ThatHasClosedIsNotTakenForAStoppedOne) {
  std::vector<Stream> own(2);
  Stream rank_0;
  std::tie(own[0], rank_0) = connection();
  JobControl rank_1(1, 2, milliseconds(10'000), std::move(own));
  rank_0->send(code(ControlKind::leave), {});
  rank_0.reset();
  rank_1.poll(0);
  rank_1.suspect(kStandstill);
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
  std::tie(own[0], rank_0) = connection();
  JobControl rank_1(1, 3, milliseconds(10'000), std::move(own));
  rank_0->send(code(ControlKind::leave), {});
  rank_0.reset();
  rank_1.poll(0);
  for (std::uint64_t call = 1; call < 3; ++call) {
    try {
      rank_1.enter({.sequence = call, .count = 100});
      ADD_FAILURE() << "call " << call << " may begin without rank 0";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::peer_died);
      EXPECT_EQ(error.rank(), 0) << error.what();
    }
    rank_1.poll(0);
  }
}

/// As when its process is stopped, or gets no CPU.
TEST(JobControl, APauseOfRank0IsNotTheOthersSilence) {
  std::vector<Stream> own(2);
  Stream rank_1;
  std::tie(own[1], rank_1) = connection();
  JobControl rank_0(0, 2, milliseconds(500), std::move(own));
  rank_0.enter({.sequence = 1, .count = 100});
  std::this_thread::sleep_for(milliseconds(600));
  rank_0.poll(0);
  EXPECT_FALSE(rank_1->receive()) << "asked where it stays";
  std::optional<ControlFrame> question;
  EXPECT_TRUE(test::comes_true([&] {
    rank_0.poll(0);
    question = rank_1->receive();
    return question.has_value();
  }));
  ASSERT_TRUE(question);
  EXPECT_EQ(question->kind, code(ControlKind::question));
}

} // namespace
} // namespace weir::host
