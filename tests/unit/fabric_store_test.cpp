// SPDX-License-Identifier: BSD-3-Clause

#include "store/etcd_store.hpp"
#include "store/sqlite_store.hpp"
#include "support/comes_true.hpp"
#include "support/etcd_member.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <array>
#include <etcd/rpc.pb.h>
#include <gmock/gmock.h>
#include <memory>
#include <netinet/in.h>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace weir::store::fabric_store_test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

const std::string kBytes("a\0b", 3);

Written put(Store& store, const std::string& key, const std::string& value) {
  const Change change{key, value};
  return store.write({&change, 1});
}

bool leads(Store& store) {
  return store.leadership().standing == Standing::leads;
}

class Sqlite {
 public:
  static bool is_there() { return true; }

  std::unique_ptr<Store> open() const {
    return std::make_unique<SqliteStore>(folder_.path() / "f.db");
  }

 private:
  const test::TemporaryFolder folder_{"weir-store"};
};

/// One for all tests, each of which has a fabric of its own.
class Etcd {
 public:
  static bool is_there() { return !test::etcd_program().empty(); }

  static test::EtcdMember& member() {
    static test::EtcdMember the_member;
    return the_member;
  }

  const std::string& fabric() const { return fabric_; }

  std::unique_ptr<EtcdStore> stand_by(const std::string& name) const {
    return std::make_unique<EtcdStore>(EtcdAccess{.servers = {member().url()}}, fabric_, name);
  }

  std::unique_ptr<EtcdStore> open(const std::string& name = "one") const {
    auto store = stand_by(name);
    EXPECT_TRUE(test::comes_true([&] { return leads(*store); }));
    return store;
  }

 private:
  const std::string fabric_ = testing::UnitTest::GetInstance()->current_test_info()->name();
};

template <typename Engine>
class AnyStore : public testing::Test {
 protected:
  void SetUp() override {
    if (!Engine::is_there()) {
      GTEST_SKIP() << "there is no etcd: tools/prepare test unpacks it";
    }
  }
};

using Engines = testing::Types<Sqlite, Etcd>;
TYPED_TEST_SUITE(AnyStore, Engines);

TYPED_TEST(AnyStore, HasWhatWasWrittenAlsoForTheNextManager) {
  const TypeParam engine;
  {
    const auto store = engine.open();
    const std::array both{Change{"job/1", kBytes}, Change{"job/2", "x"}};
    EXPECT_EQ(store->write(both), Written::done);
    const std::array one{Change{"job/2", std::nullopt}};
    EXPECT_EQ(store->write(one), Written::done);
  }
  const auto store = engine.open();
  const auto items = store->read_all();
  ASSERT_EQ(items.value().size(), 1U);
  EXPECT_EQ(items->front().key, "job/1");
  EXPECT_EQ(items->front().value, kBytes);
  EXPECT_EQ(store->read("job/1"), kBytes);
  EXPECT_EQ(store->read("job/2"), "");
}

TYPED_TEST(AnyStore, ChangesAndRemovesInOneStepWhatIsThereAlready) {
  const TypeParam engine;
  const auto store = engine.open();
  ASSERT_EQ(put(*store, "mark/switch/leaf0", "a"), Written::done);
  ASSERT_EQ(put(*store, "fabric", ""), Written::done);
  const std::array both{Change{"fabric", std::string(100'000, 'x')},
                        Change{"mark/switch/leaf0", std::nullopt}, Change{"job/9", std::nullopt}};
  EXPECT_EQ(store->write(both), Written::done);
  const auto items = store->read_all();
  ASSERT_EQ(items.value().size(), 1U);
  EXPECT_EQ(items->front().key, "fabric");
  EXPECT_EQ(items->front().value, std::string(100'000, 'x'));
}

TYPED_TEST(AnyStore, IsEmptyAtFirstAndItsManagerLeads) {
  const TypeParam engine;
  const auto store = engine.open();
  EXPECT_EQ(store->read_all().value().size(), 0U);
  EXPECT_EQ(store->read("fabric"), "");
  EXPECT_TRUE(leads(*store));
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

class EtcdStores : public AnyStore<Etcd> {
 protected:
  /// Somebody who knows nothing of leaders.
  class Stranger {
   public:
    Stranger() : calls_({.servers = {Etcd::member().url()}}) {}

    void put(const std::string& key, const std::string& value) {
      etcdserverpb::TxnRequest request;
      request.add_success()->mutable_request_put()->set_key(key);
      request.mutable_success(0)->mutable_request_put()->set_value(value);
      order(request);
    }

    void remove(const std::string& key) {
      etcdserverpb::TxnRequest request;
      request.add_success()->mutable_request_delete_range()->set_key(key);
      order(request);
    }

    /// The key whose turn it is.
    std::string leader_of(const std::string& fabric) {
      etcdserverpb::RangeRequest request;
      etcdserverpb::RangeResponse response;
      request.set_key("/weir/" + fabric + "/leader/");
      request.set_range_end("/weir/" + fabric + "/leader0");
      request.set_limit(1);
      request.set_sort_order(etcdserverpb::RangeRequest::ASCEND);
      request.set_sort_target(etcdserverpb::RangeRequest::CREATE);
      EXPECT_TRUE(calls_.ask("/etcdserverpb.KV/Range", request, response).ok());
      return response.kvs_size() == 0 ? "" : response.kvs(0).key();
    }

   private:
    void order(const etcdserverpb::TxnRequest& request) {
      etcdserverpb::TxnResponse response;
      EXPECT_TRUE(calls_.ask("/etcdserverpb.KV/Txn", request, response).ok());
    }

    EtcdCalls calls_;
  };

  Etcd etcd_;
};

TEST_F(EtcdStores, OneLeadsAndTheNextTakesOverWithAHigherNumber) {
  auto one = etcd_.open("one");
  const auto other = etcd_.stand_by("other");
  EXPECT_TRUE(test::comes_true([&] { return other->leadership().leader == "one"; }));
  EXPECT_EQ(other->leadership().standing, Standing::stands_by);
  EXPECT_EQ(put(*other, "fabric", "other"), Written::fenced);
  EXPECT_EQ(put(*one, "fabric", "one"), Written::done);
  const std::uint64_t number = one->leadership().number;
  one.reset();
  ASSERT_TRUE(test::comes_true([&] { return leads(*other); }));
  EXPECT_GT(other->leadership().number, number);
  EXPECT_EQ(other->read("fabric"), "one");
  EXPECT_EQ(put(*other, "fabric", "other"), Written::done);
}

TEST_F(EtcdStores, TheOneThatLeadsCountsThoseThatWait) {
  const auto one = etcd_.open("one");
  EXPECT_TRUE(test::comes_true([&] { return one->leadership().standbys == 0U; }));
  const auto other = etcd_.stand_by("other");
  auto third = etcd_.stand_by("third");
  EXPECT_TRUE(test::comes_true([&] { return one->leadership().standbys == 2U; }));
  EXPECT_EQ(other->leadership().standbys, std::nullopt);
  third.reset();
  EXPECT_TRUE(test::comes_true([&] { return one->leadership().standbys == 1U; }));
}

TEST_F(EtcdStores, AnOldLeaderWritesNothing) {
  const auto one = etcd_.open("one");
  ASSERT_EQ(put(*one, "job/1", "one"), Written::done);
  const auto other = etcd_.stand_by("other");
  Stranger().remove(Stranger().leader_of(etcd_.fabric()));
  ASSERT_TRUE(test::comes_true([&] { return leads(*other); }));
  ASSERT_TRUE(test::comes_true([&] { return leads(*one); })) << "it does not know yet";
  EXPECT_EQ(put(*one, "job/1", "late"), Written::fenced);
  EXPECT_EQ(one->leadership().standing, Standing::over);
  EXPECT_EQ(other->read("job/1"), "one");
}

TEST_F(EtcdStores, AfterAWriteThatItDoesNotKnowItReadsFirst) {
  const auto store = etcd_.open();
  ASSERT_EQ(put(*store, "job/1", "a"), Written::done);
  Stranger().put("/weir/" + etcd_.fabric() + "/written", "as one that was late");
  EXPECT_EQ(put(*store, "job/1", "b"), Written::lost);
  EXPECT_EQ(store->read("job/1"), "a");
  EXPECT_TRUE(store->read_all());
  EXPECT_EQ(put(*store, "job/1", "b"), Written::done);
}

TEST_F(EtcdStores, ItStopsByItselfWhenEtcdDoesNotAnswer) {
  const auto store = etcd_.open();
  const std::uint64_t number = store->leadership().number;
  Etcd::member().pause();
  EXPECT_EQ(put(*store, "job/1", "a"), Written::lost);
  EXPECT_TRUE(test::comes_true([&] { return store->leadership().standing == Standing::in_doubt; }));
  EXPECT_EQ(put(*store, "job/1", "a"), Written::lost);
  EXPECT_FALSE(store->read_all());
  Etcd::member().go_on();
  EXPECT_TRUE(test::comes_true([&] { return store->leadership().standing != Standing::in_doubt; }));
  EXPECT_EQ(store->leadership().number, number);
}

/// It takes connections, and never says a word.
TEST_F(EtcdStores, AMemberThatDoesNotAnswerIsPassedOver) {
  const int silent = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  socklen_t bytes = sizeof(address);
  ASSERT_EQ(bind(silent, reinterpret_cast<sockaddr*>(&address), bytes), 0);
  ASSERT_EQ(listen(silent, 16), 0);
  ASSERT_EQ(getsockname(silent, reinterpret_cast<sockaddr*>(&address), &bytes), 0);
  const EtcdAccess access{.servers = {"http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)),
                                      "http://" + test::free_address(), Etcd::member().url()}};
  EtcdStore store(access, etcd_.fabric(), "one");
  EXPECT_TRUE(test::comes_true([&] { return leads(store); }));
  EXPECT_EQ(put(store, "job/1", "a"), Written::done);
  close(silent);
}

} // namespace
} // namespace weir::store::fabric_store_test
