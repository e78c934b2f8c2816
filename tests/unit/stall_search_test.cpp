// SPDX-License-Identifier: BSD-3-Clause

/// Whom rank 0 blames, as tables of what the ranks answer.

#include "host/control/stall_search.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::host::stall_search_test {
namespace {

using Kind = Suspicion::Kind;

constexpr std::optional<Progress> kSilent;

/// Stands in its call `done` + 1 with so many bytes.
Progress stands(std::uint64_t done, std::uint64_t bytes = 0) {
  return {.calls_made = done + 1, .calls_done = done, .bytes_done = bytes, .stands_still = true};
}

/// Has begun that call a moment ago.
Progress begins(std::uint64_t done) {
  return {.calls_made = done + 1, .calls_done = done};
}

/// Has done all of its calls.
Progress idle(std::uint64_t done) {
  return {.calls_made = done, .calls_done = done, .stands_still = true};
}

struct Row {
  const char* description;
  Kind kind;
  std::vector<std::optional<Progress>> answers;
  std::optional<std::string> error; // how it begins; none: the job goes on
  std::optional<std::uint16_t> rank;
  std::string waits_for = {};
};

TEST(StallSearch, BlamesARankThatIsSilentOrBehindAndNoneThatIsLate) {
  const std::vector<Row> rows{
      {"silent",
       Kind::standstill,
       {stands(0), kSilent, idle(0), kSilent},
       "no answer from ranks 1, 3: ",
       1},
      {"all late but one",
       Kind::standstill,
       {idle(4), stands(4), idle(4), idle(4)},
       {},
       {},
       "ranks 0, 2, 3 have not made call 5"},
      {"late",
       Kind::standstill,
       {stands(4), stands(4), stands(4), idle(4)},
       {},
       {},
       "rank 3 has not made call 5"},
      {"late for a later call than the first that stands",
       Kind::standstill,
       {stands(4), stands(3, 50), idle(4), stands(4)},
       "rank 1 of 4 lack results",
       1},
      {"came just now", Kind::standstill, {stands(4), stands(4), stands(4), begins(4)}, {}, {}},
      {"behind",
       Kind::standstill,
       {stands(4, 200), stands(4, 200), stands(4, 100), stands(4, 200)},
       "rank 2 of 4 lack results that others have",
       2},
      {"others are done",
       Kind::standstill,
       {idle(5), idle(5), stands(4, 800), idle(5)},
       "rank 2 of 4 lack results that others have",
       2},
      {"nobody moves",
       Kind::standstill,
       {stands(4), stands(4), stands(4), stands(4)},
       "all 4 ranks are there and equally far",
       {}},
      {"nobody waits any more", Kind::standstill, {idle(5), idle(5), idle(5), idle(5)}, {}, {}},
      {"a lost connection, and one is late",
       Kind::broken,
       {stands(4), stands(4), idle(4), stands(4)},
       "rank 2 has not made call 5; rank 1 noticed: nothing moved",
       2},
      {"a lost connection, and one came just now",
       Kind::broken,
       {stands(4), stands(4), begins(4), stands(4)},
       "all 4 ranks are there",
       {}},
      {"later than allowed",
       Kind::late,
       {stands(4), stands(4), idle(4), stands(4)},
       "nothing moved",
       3},
      {"not late, but behind", Kind::late, {stands(4), stands(3), idle(4), stands(4)}, {}, {}},
      {"lacks the acknowledgement of one that is behind",
       Kind::standstill,
       {idle(5), stands(4, 800), stands(4, 700), idle(5)},
       "rank 2 of 4 lack results that others have",
       2},
      {"came when it was almost too late",
       Kind::late,
       {stands(4), stands(4), begins(4), stands(4)},
       {},
       {}},
  };
  for (const Row& row : rows) {
    StallSearch search({row.kind, 1, Error(ErrorCode::timeout, 3, "nothing moved")}, 4,
                       Deadline::max());
    bool is_silent = false;
    for (std::uint16_t rank = 0; rank < row.answers.size(); ++rank) {
      EXPECT_EQ(search.is_over(Clock::now()), false) << row.description;
      if (row.answers[rank]) {
        search.note_answer(rank, *row.answers[rank]);
      }
      is_silent = is_silent || !row.answers[rank];
    }
    EXPECT_EQ(search.is_over(Clock::now()), !is_silent) << row.description;
    EXPECT_TRUE(search.is_over(Deadline::max()));
    const StallSearch::Outcome outcome = search.outcome();
    ASSERT_EQ(outcome.error.has_value(), row.error.has_value()) << row.description;
    EXPECT_EQ(outcome.waits_for, row.waits_for) << row.description;
    if (row.error) {
      const std::string text = outcome.error->what();
      EXPECT_TRUE(text.starts_with(*row.error)) << row.description << ": " << text;
      EXPECT_EQ(outcome.error->rank(), row.rank) << row.description;
    }
  }
}

TEST(StallSearch, ARankThatHasClosedIsNeitherSilentNorLateNorBehind) {
  StallSearch search({Kind::standstill, 0, Error(ErrorCode::timeout, std::nullopt, "x")}, 3,
                     Deadline::max());
  search.note_answer(0, stands(4, 100));
  search.note_answer(1, stands(4, 50));
  search.excuse(2);
  const StallSearch::Outcome outcome = search.outcome();
  ASSERT_TRUE(outcome.error);
  EXPECT_NE(outcome.error->rank(), 2);
}

/// A rank whose connection is lost cannot be told to wait.
TEST(StallSearch, TheSuspicionThatLeavesTheLeastHopeCounts) {
  for (const bool is_broken_first : {false, true}) {
    const Suspicion still{Kind::standstill, 0, Error(ErrorCode::timeout, std::nullopt, "still")};
    const Suspicion broken{Kind::broken, 1, Error(ErrorCode::retry_exceeded, 2, "lost")};
    StallSearch search(is_broken_first ? broken : still, 2, Deadline::max());
    search.add(is_broken_first ? still : broken);
    search.note_answer(0, stands(4));
    search.note_answer(1, idle(4));
    const StallSearch::Outcome outcome = search.outcome();
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->code(), ErrorCode::retry_exceeded);
  }
}

/// Those who wait for a late rank stand still, and say so at the same time.
TEST(StallSearch, ARankThatIsTooLateIsBlamedWhoeverStandsStill) {
  StallSearch search({Kind::late, 0, Error(ErrorCode::timeout, 1, "late")}, 2, Deadline::max());
  search.add({Kind::standstill, 0, Error(ErrorCode::timeout, std::nullopt, "still")});
  EXPECT_TRUE(search.is_about_lateness());
  search.note_answer(0, stands(4));
  search.note_answer(1, idle(3));
  const StallSearch::Outcome outcome = search.outcome();
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->rank(), 1);
}

} // namespace
} // namespace weir::host::stall_search_test
