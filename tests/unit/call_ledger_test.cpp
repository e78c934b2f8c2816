// SPDX-License-Identifier: BSD-3-Clause

/// What rank 0 knows of the ranks' calls, in any order of hearing of them.

#include "host/base/error.hpp"
#include "host/control/call_ledger.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace weir::host::call_ledger_test {
namespace {

using Ranks = std::vector<std::uint16_t>;

Call call(std::uint64_t sequence, std::uint64_t count = 100) {
  return {.sequence = sequence, .count = count};
}

TEST(CallLedger, KnowsWhichRanksLackACall) {
  CallLedger ledger(3);
  EXPECT_EQ(ledger.most(), 0U);
  EXPECT_EQ(ledger.first_open(), 1U);
  ledger.note(2, call(1));
  ledger.note(2, call(2));
  ledger.note(0, call(1));
  EXPECT_EQ(ledger.most(), 2U);
  EXPECT_EQ(ledger.first_open(), 1U);
  EXPECT_EQ(ledger.lacking(1), Ranks({1}));
  EXPECT_EQ(ledger.lacking(2), Ranks({0, 1}));
  ledger.note(1, call(1));
  EXPECT_EQ(ledger.first_open(), 2U);
  EXPECT_EQ(ledger.lacking(1), Ranks());
  ledger.note(0, call(2));
  ledger.note(1, call(2));
  EXPECT_EQ(ledger.first_open(), 3U);
}

TEST(CallLedger, KeepsABoundedNumberOfCallsAheadOfRank0) {
  constexpr std::uint64_t kMost = 262'144;
  CallLedger ledger(2);
  for (std::uint64_t sequence = 1; sequence <= kMost; ++sequence) {
    ledger.note(1, call(sequence));
  }
  try {
    ledger.note(1, call(kMost + 1));
    ADD_FAILURE() << "more are kept";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::transport_failure);
    EXPECT_EQ(error.rank(), 1);
    EXPECT_STREQ(error.what(),
                 "rank 1 makes call 262145; rank 0 has made 0; allowed: 262144 calls more; "
                 "a barrier waits for rank 0");
  }
  ledger.note(0, call(1));
  EXPECT_NO_THROW(ledger.note(1, call(kMost + 1))) << "there is room for one";
}

TEST(CallLedger, KeepsABoundedNumberOfCallsForTheLastRank) {
  constexpr std::uint64_t kMost = 262'144;
  CallLedger ledger(3);
  ledger.note(1, call(1));
  for (std::uint64_t sequence = 1; sequence <= kMost; ++sequence) {
    EXPECT_TRUE(ledger.has_room());
    ledger.note(0, call(sequence));
  }
  EXPECT_FALSE(ledger.has_room());
  try {
    ledger.note(0, call(kMost + 1));
    ADD_FAILURE() << "more are kept";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::transport_failure);
    EXPECT_EQ(error.rank(), 2);
    EXPECT_STREQ(error.what(),
                 "rank 0 makes call 262145; rank 2 made 0; allowed: 262144 calls more");
  }
}

/// Rank 1 differs in its third call, told before, between or after rank 0's.
TEST(CallLedger, ComparesWithRank0InWhateverOrderItHears) {
  const std::vector<Ranks> orders{
      {0, 0, 0, 1, 1, 1}, {1, 1, 1, 0, 0, 0}, {1, 0, 0, 1, 1, 0}, {0, 1, 1, 1, 0, 0}};
  for (const auto& order : orders) {
    CallLedger ledger(2);
    std::vector<std::uint64_t> made(2);
    std::string error;
    for (const std::uint16_t rank : order) {
      const std::uint64_t sequence = ++made[rank];
      EXPECT_EQ(error, "") << "before the last of the two third calls";
      try {
        ledger.note(rank, call(sequence, sequence == 3 && rank == 1 ? 99 : 100));
      } catch (const Error& caught) {
        EXPECT_EQ(caught.code(), ErrorCode::mismatch);
        EXPECT_EQ(caught.rank(), 1);
        error = caught.what();
      }
    }
    EXPECT_EQ(error, "call 3: rank 1 calls all-reduce of 99 f32, sum; rank 0 calls all-reduce of "
                     "100 f32, sum");
  }
}

TEST(CallLedger, RefusesACallThatIsNotTheNext) {
  for (const std::uint64_t sequence : {0, 1, 3}) {
    CallLedger ledger(2);
    ledger.note(1, call(1));
    try {
      ledger.note(1, call(sequence));
      ADD_FAILURE() << sequence;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::transport_failure);
      EXPECT_EQ(error.rank(), 1);
    }
  }
}

} // namespace
} // namespace weir::host::call_ledger_test
