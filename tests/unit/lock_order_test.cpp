// SPDX-License-Identifier: BSD-3-Clause

/// In which order a thread may take control's locks.

#include "lcore/lock_order.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>

namespace weir::lcore::lock_order_test {
namespace {

RankedMutex<LockRank::writer> writer;
RankedMutex<LockRank::lcores> lcores;

TEST(LockOrder, LocksAreTakenFromAboveAndAgain) {
  for (int times = 0; times < 2; ++times) {
    const std::lock_guard first(writer);
    const std::lock_guard second(lcores);
    EXPECT_NE(held_ranks, 0U);
  }
  EXPECT_EQ(held_ranks, 0U);
}

TEST(LockOrder, EachThreadHasItsOwn) {
  const std::lock_guard lock(lcores);
  std::thread other([] { const std::lock_guard first(writer); });
  other.join();
}

TEST(LockOrderDeathTest, AWrongOrderFailsThoughNobodyElseHoldsALock) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::lock_guard lock(lcores);
  EXPECT_DEBUG_DEATH(const std::lock_guard second(writer), "a lock below this one is held");
}

} // namespace
} // namespace weir::lcore::lock_order_test
