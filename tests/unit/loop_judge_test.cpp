// SPDX-License-Identifier: BSD-3-Clause

/// Which ports are closed for a loop, and for how long.

#include "control/loop_judge.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::control::loop_judge_test {
namespace {

using Kind = LoopFinding::Kind;

constexpr std::uint64_t kSecond = 1'000'000'000;

/// Four ports that bridge, and port 4, which does not.
class LoopJudgeTest : public testing::Test {
 protected:
  /// The switch's probe of one port came back by another.
  void come_back(std::uint16_t from, std::uint16_t by) {
    ++seen_[by].own;
    seen_[by].own_from = from;
  }

  void come_from_other_switch(std::uint16_t by, std::uint64_t sender = 77) {
    ++seen_[by].others;
    seen_[by].others_from = sender;
  }

  /// What is found a second later, in words.
  std::vector<std::string> look(std::uint64_t seconds = 1) {
    now_ += seconds * kSecond;
    std::vector<std::string> words;
    for (const LoopFinding& finding : judge_.look(seen_, ports_, now_)) {
      words.push_back(in_words(finding));
    }
    seen_.assign(l2::kMaxPorts, {});
    return words;
  }

  static std::string in_words(const LoopFinding& finding) {
    const std::string port = std::to_string(finding.port);
    switch (finding.kind) {
    case Kind::closed:
      return "closed " + port + " for " + std::to_string(finding.other);
    case Kind::reopened:
      return "reopened " + port;
    case Kind::wrong_cable:
      return "wrong cable " + port + " of " + std::to_string(finding.sender);
    }
    return {};
  }

  using Words = std::vector<std::string>;

  std::uint64_t now_ = 1000 * kSecond;
  PortsNow ports_{.bridged = 0b01111, .unbridged = 0b10000};
  std::vector<ProbesSeen> seen_ = std::vector<ProbesSeen>(l2::kMaxPorts);
  LoopJudge judge_;
};

TEST_F(LoopJudgeTest, NothingComesBackWithoutALoop) {
  EXPECT_EQ(look(), Words{});
  come_from_other_switch(1);
  EXPECT_EQ(look(), Words{}) << "another switch behind a port that bridges";
  EXPECT_EQ(judge_.closed(), 0u);
}

TEST_F(LoopJudgeTest, ClosesTheHigherPortOfALoop) {
  come_back(1, 3);
  come_back(3, 1);
  EXPECT_EQ(look(), Words{"closed 3 for 1"}) << "once, though both came back";
  EXPECT_EQ(judge_.closed(), 0b1000u);
  EXPECT_EQ(judge_.of(3).loops, 1u);
  EXPECT_EQ(judge_.of(3).other, 1);
  EXPECT_EQ(judge_.of(1).loops, 0u);
}

/// Else a stranger and his partner at a host's port could take a rack's uplink out.
TEST_F(LoopJudgeTest, ClosesFirstWhatLeadsToNoSwitchOfATree) {
  ports_.of_trees = 0b1000;
  come_back(3, 0);
  come_back(0, 3);
  EXPECT_EQ(look(), Words{"closed 0 for 3"}) << "once, though both came back";
  EXPECT_EQ(judge_.closed(), 0b0001u);
  EXPECT_EQ(judge_.of(0).other, 3);
  come_back(1, 2);
  EXPECT_EQ(look(), Words{"closed 2 for 1"}) << "neither does";
  ports_.of_trees = 0b1010;
  come_back(1, 3);
  EXPECT_EQ(look(), Words{"closed 3 for 1"}) << "both do";
}

/// One that is closed has cut the loop, whatever is behind it.
TEST_F(LoopJudgeTest, KeepsAPortToASwitchClosedThatWasClosedFirst) {
  come_back(0, 3);
  look();
  ports_.of_trees = 0b1000;
  come_back(0, 3);
  EXPECT_EQ(look(), Words{});
  EXPECT_EQ(judge_.closed(), 0b1000u);
}

TEST_F(LoopJudgeTest, OneDirectionIsALoopToo) {
  come_back(3, 1);
  EXPECT_EQ(look(), Words{"closed 3 for 1"});
}

TEST_F(LoopJudgeTest, OpensAfterThirtySeconds) {
  come_back(0, 2);
  look();
  EXPECT_EQ(look(29), Words{});
  EXPECT_EQ(judge_.closed(), 0b0100u);
  EXPECT_EQ(look(1), Words{"reopened 2"});
  EXPECT_EQ(judge_.closed(), 0u);
  come_back(0, 2);
  EXPECT_EQ(look(), Words{"closed 2 for 0"});
  EXPECT_EQ(judge_.of(2).loops, 2u);
}

TEST_F(LoopJudgeTest, StaysClosedWhileProbesComeByIt) {
  come_back(0, 2);
  look();
  for (unsigned second = 0; second < 100; ++second) {
    come_back(0, 2);
    EXPECT_EQ(look(), Words{}) << second;
  }
  EXPECT_EQ(look(29), Words{});
  EXPECT_EQ(look(1), Words{"reopened 2"});
  EXPECT_EQ(judge_.of(2).loops, 1u);
}

/// A closed port has cut its loops.
TEST_F(LoopJudgeTest, ClosesNoSecondPortOfALoop) {
  come_back(0, 2);
  look();
  come_back(3, 2); // the higher one of this pair bridges
  EXPECT_EQ(look(), Words{});
  EXPECT_EQ(judge_.closed(), 0b0100u);
}

TEST_F(LoopJudgeTest, ClosesAllPortsButOneOfASegment) {
  come_back(3, 0);
  come_back(3, 1);
  come_back(1, 3);
  EXPECT_EQ(look(), Words{"closed 3 for 0"});
  come_back(0, 1);
  come_back(1, 0);
  EXPECT_EQ(look(), Words{"closed 1 for 0"});
  EXPECT_EQ(judge_.closed(), 0b1010u);
}

TEST_F(LoopJudgeTest, NamesAWrongCableOnceAndCountsItsProbes) {
  come_from_other_switch(4, 99);
  EXPECT_EQ(look(), Words{"wrong cable 4 of 99"});
  for (unsigned second = 0; second < 200; ++second) {
    come_from_other_switch(4, 99);
    EXPECT_EQ(look(), Words{});
  }
  EXPECT_EQ(judge_.of(4).wrong_cable, 201u);
  EXPECT_EQ(look(61), Words{});
  come_back(1, 4);
  EXPECT_EQ(look(), Words{"wrong cable 4 of 0"}) << "this switch's own";
  EXPECT_EQ(judge_.closed(), 0u);
}

TEST_F(LoopJudgeTest, KnowsWhereSwitchesAre) {
  come_from_other_switch(1);
  come_from_other_switch(4);
  look();
  EXPECT_EQ(judge_.to_switches(now_), 0b0010u);
  EXPECT_EQ(judge_.to_switches(now_ + 2 * kSecond), 0b0010u);
  EXPECT_EQ(judge_.to_switches(now_ + 3 * kSecond), 0u);
}

TEST_F(LoopJudgeTest, ForgetsPortsThatTheConfigurationTakesAway) {
  come_back(0, 2);
  look();
  ports_ = {.bridged = 0b01011, .unbridged = 0b10100};
  EXPECT_EQ(look(), Words{});
  EXPECT_EQ(judge_.closed(), 0u);
}

TEST_F(LoopJudgeTest, OpensAllWhenItEnds) {
  come_back(0, 2);
  come_back(1, 3);
  EXPECT_EQ(look(), (Words{"closed 2 for 0", "closed 3 for 1"}));
  EXPECT_EQ(judge_.end().size(), 2u);
  EXPECT_EQ(judge_.closed(), 0u);
}

} // namespace
} // namespace weir::control::loop_judge_test
