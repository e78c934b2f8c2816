// SPDX-License-Identifier: BSD-3-Clause

#include "store/sqlite_store.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <array>
#include <gmock/gmock.h>
#include <optional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace weir::store::fabric_store_test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(SqliteStore, HasWhatWasWrittenAlsoAfterItsProcess) {
  const test::TemporaryFolder folder("weir-store");
  const std::string bytes("a\0b", 3);
  {
    SqliteStore store(folder.path() / "f.db");
    const std::array both{Change{"job/1", bytes}, Change{"job/2", "x"}};
    EXPECT_EQ(store.write(both), Written::done);
    const std::array one{Change{"job/2", std::nullopt}};
    EXPECT_EQ(store.write(one), Written::done);
  }
  SqliteStore store(folder.path() / "f.db");
  const auto items = store.read_all();
  ASSERT_EQ(items.value().size(), 1U);
  EXPECT_EQ(items->front().key, "job/1");
  EXPECT_EQ(items->front().value, bytes);
  EXPECT_EQ(store.read("job/1"), bytes);
  EXPECT_EQ(store.read("job/2"), "");
}

TEST(SqliteStore, ASecondProcessIsRefused) {
  const test::TemporaryFolder folder("weir-store");
  const std::string file = (folder.path() / "f.db").string();
  const SqliteStore store(file);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    try {
      const SqliteStore second(file);
      _exit(1);
    } catch (const StoreError& error) {
      _exit(std::string(error.what()).find("database is locked") == std::string::npos ? 2 : 0);
    }
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(SqliteStore, WhatIsNoStoreIsRefused) {
  const test::TemporaryFolder folder("weir-store");
  EXPECT_THAT([&] { SqliteStore(folder.path() / "none" / "f.db"); },
              ThrowsMessage<StoreError>(HasSubstr("allowed: a file on a local disk")));
}

} // namespace
} // namespace weir::store::fabric_store_test
