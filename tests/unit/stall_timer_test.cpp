// SPDX-License-Identifier: BSD-3-Clause

#include "host/base/stall_timer.hpp"

#include <gtest/gtest.h>

namespace weir::host::stall_timer_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Deadline kStart = Deadline() + seconds(1000);

TEST(StallTimer, IsOverWhenARankHasLookedForSoLong) {
  StallTimer timer(milliseconds(500), kStart);
  for (int ms = 10; ms < 500; ms += 10) {
    timer.look(kStart + milliseconds(ms));
    EXPECT_FALSE(timer.is_over()) << ms;
  }
  timer.look(kStart + milliseconds(500));
  EXPECT_TRUE(timer.is_over());
}

TEST(StallTimer, BeginsAnewWithEveryMove) {
  StallTimer timer(milliseconds(150), kStart);
  timer.look(kStart + milliseconds(90));
  timer.renew();
  timer.look(kStart + milliseconds(180));
  EXPECT_FALSE(timer.is_over());
  timer.look(kStart + milliseconds(240));
  EXPECT_TRUE(timer.is_over());
}

TEST(StallTimer, DoesNotTakeItsOwnPauseForTheOthersSilence) {
  StallTimer timer(milliseconds(500), kStart);
  timer.look(kStart + seconds(60));
  EXPECT_FALSE(timer.is_over());
  for (int look = 1; look < 4; ++look) {
    timer.look(kStart + look * seconds(100));
    EXPECT_FALSE(timer.is_over()) << look;
  }
  timer.look(kStart + seconds(400)); // the fifth: each counts for a fifth of the timeout
  EXPECT_TRUE(timer.is_over());
}

TEST(StallTimer, IsOverLaterForWhoWaitsLonger) {
  StallTimer timer(milliseconds(50), kStart);
  timer.look(kStart + milliseconds(50));
  EXPECT_TRUE(timer.is_over());
  EXPECT_FALSE(timer.is_over(milliseconds(10)));
  timer.look(kStart + milliseconds(60));
  EXPECT_TRUE(timer.is_over(milliseconds(10)));
}

TEST(StallTimer, LastsForEverWithTheLongestTimeout) {
  StallTimer timer(milliseconds::max(), kStart);
  timer.look(kStart + seconds(1'000'000));
  EXPECT_FALSE(timer.is_over());
  EXPECT_FALSE(timer.is_over(seconds(2)));
}

TEST(StallTimer, TellsHowOftenItLooked) {
  StallTimer timer(seconds(10), kStart);
  timer.look(kStart + seconds(5));
  timer.renew();
  timer.look(kStart + milliseconds(5003));
  timer.look(kStart + milliseconds(5005));
  EXPECT_EQ(timer.describe(), "looked 2 times, 3 ms apart at most");
}

TEST(StallTimer, TellsALongPauseAlsoWhenSomethingMovedSinceThenButNotForEver) {
  StallTimer timer(seconds(10), kStart);
  EXPECT_EQ(timer.own_pause(), "");
  timer.look(kStart + milliseconds(999));
  EXPECT_EQ(timer.own_pause(), "");
  timer.look(kStart + milliseconds(7000));
  timer.renew();
  timer.look(kStart + milliseconds(7004));
  EXPECT_EQ(timer.own_pause(),
            "did nothing for 6001 ms until 4 ms ago: it was stopped, or got no CPU");
  for (int ms = 7500; ms < 17'000; ms += 500) {
    timer.look(kStart + milliseconds(ms));
    EXPECT_NE(timer.own_pause(), "") << ms;
  }
  timer.look(kStart + milliseconds(17'000));
  EXPECT_EQ(timer.own_pause(), "");
}

} // namespace
} // namespace weir::host::stall_timer_test
