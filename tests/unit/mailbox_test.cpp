// SPDX-License-Identifier: BSD-3-Clause
#include "manager/mailbox.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace weir::manager::mailbox_test {
namespace {

/// Callers can come again; what the manager has begun itself has nobody who would.
TEST(MailboxTest, TakesSoManyCallsAndAllElse) {
  Mailbox mailbox;
  for (int call = 0; call < 4096; ++call) {
    ASSERT_TRUE(mailbox.add_call([] {})) << call;
  }
  EXPECT_FALSE(mailbox.add_call([] {}));
  mailbox.add([] {});
  EXPECT_EQ(mailbox.take(std::chrono::milliseconds(0)).size(), 4097U);
  EXPECT_TRUE(mailbox.add_call([] {}));
}

} // namespace
} // namespace weir::manager::mailbox_test
