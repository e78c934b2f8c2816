// SPDX-License-Identifier: BSD-3-Clause
#include "manager/kept_answer.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

namespace weir::manager::kept_answer_test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

Clock::time_point now;

Clock::time_point tell_now() {
  return now;
}

class KeptAnswerTest : public testing::Test {
 protected:
  int asked_ = 0;
  bool has_answer_ = true;
  KeptAnswer<int> kept_{[this] {
                          ++asked_;
                          return has_answer_ ? std::make_shared<const int>(asked_) : nullptr;
                        },
                        tell_now};
};

TEST_F(KeptAnswerTest, IsAskedForOnceASecond) {
  EXPECT_EQ(*kept_.get(), 1);
  now += milliseconds(999);
  EXPECT_EQ(*kept_.get(), 1);
  now += milliseconds(1);
  EXPECT_EQ(*kept_.get(), 2);
  EXPECT_EQ(*kept_.get(), 2);
}

TEST_F(KeptAnswerTest, ThatIsNoneIsNotKept) {
  has_answer_ = false;
  EXPECT_EQ(kept_.get(), nullptr);
  has_answer_ = true;
  EXPECT_EQ(*kept_.get(), 2);
  now += milliseconds(1000);
  has_answer_ = false;
  EXPECT_EQ(kept_.get(), nullptr) << "an old answer is none";
}

} // namespace
} // namespace weir::manager::kept_answer_test
