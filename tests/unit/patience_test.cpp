// SPDX-License-Identifier: BSD-3-Clause

#include "host/collective/patience.hpp"

#include <gtest/gtest.h>

namespace weir::host {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Deadline kStart = Deadline() + seconds(1000);

TEST(Patience, IsOverWhenARankHasLookedForSoLong) {
  Patience patience(milliseconds(500), kStart);
  for (int ms = 10; ms < 500; ms += 10) {
    patience.look(kStart + milliseconds(ms));
    EXPECT_FALSE(patience.is_over()) << ms;
  }
  patience.look(kStart + milliseconds(500));
  EXPECT_TRUE(patience.is_over());
}

TEST(Patience, BeginsAnewWithEveryMove) {
  Patience patience(milliseconds(150), kStart);
  patience.look(kStart + milliseconds(90));
  patience.renew();
  patience.look(kStart + milliseconds(180));
  EXPECT_FALSE(patience.is_over());
  patience.look(kStart + milliseconds(240));
  EXPECT_TRUE(patience.is_over());
}

TEST(Patience, DoesNotTakeItsOwnPauseForTheOthersSilence) {
  Patience patience(milliseconds(500), kStart);
  patience.look(kStart + seconds(60));
  EXPECT_FALSE(patience.is_over());
  for (int look = 1; look < 4; ++look) {
    patience.look(kStart + look * seconds(100));
    EXPECT_FALSE(patience.is_over()) << look;
  }
  patience.look(kStart + seconds(400)); // the fifth: each counts for a fifth of the timeout
  EXPECT_TRUE(patience.is_over());
}

TEST(Patience, LastsForEverWithTheLongestTimeout) {
  Patience patience(milliseconds::max(), kStart);
  patience.look(kStart + seconds(1'000'000));
  EXPECT_FALSE(patience.is_over());
}

TEST(Patience, TellsHowOftenItLooked) {
  Patience patience(seconds(10), kStart);
  patience.look(kStart + seconds(5));
  patience.renew();
  patience.look(kStart + milliseconds(5003));
  patience.look(kStart + milliseconds(5005));
  EXPECT_EQ(patience.describe(), "looked 2 times, 3 ms apart at most");
}

TEST(Patience, TellsALongPauseAlsoWhenSomethingMovedSinceThenButNotForEver) {
  Patience patience(seconds(10), kStart);
  EXPECT_EQ(patience.own_pause(), "");
  patience.look(kStart + milliseconds(999));
  EXPECT_EQ(patience.own_pause(), "");
  patience.look(kStart + milliseconds(7000));
  patience.renew();
  patience.look(kStart + milliseconds(7004));
  EXPECT_EQ(patience.own_pause(),
            "did nothing for 6001 ms until 4 ms ago: it was stopped, or got no CPU");
  for (int ms = 7500; ms < 17'000; ms += 500) {
    patience.look(kStart + milliseconds(ms));
    EXPECT_NE(patience.own_pause(), "") << ms;
  }
  patience.look(kStart + milliseconds(17'000));
  EXPECT_EQ(patience.own_pause(), "");
}

} // namespace
} // namespace weir::host
