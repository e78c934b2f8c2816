// SPDX-License-Identifier: BSD-3-Clause

/// What the manager's loop answers where the simulation (tests/manager) does not look.

#include "manager_fixture.hpp"

#include <gtest/gtest.h>

#include <gmock/gmock.h>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::jobs::manager_loop_test {
namespace {

using testing::HasSubstr;
using namespace manager_fixture;

constexpr std::size_t kMostOfEtcd = 1536 << 10; // bytes, of a request: its --max-request-bytes

TEST_F(ManagerLoop, AGoodbyeThatIsStoredIsAnsweredByOk) {
  const std::uint64_t job = hold();
  ASSERT_NE(job, 0U);
  EXPECT_EQ(code_of_end(job), Code::ok);
}

/// The owner has to tell the manager that leads; else its rings stay until it is taken for gone.
TEST_F(ManagerLoop, AGoodbyeToAManagerThatIsFencedMeanwhileIsNotAnsweredByOk) {
  const std::uint64_t job = hold();
  ASSERT_NE(job, 0U);
  store_.answer = store::Written::fenced;
  EXPECT_EQ(code_of_end(job), Code::unavailable);
  EXPECT_NE(outside_.stopped, "");
}

TEST_F(ManagerLoop, AGoodbyeThatIsNotStoredIsNotAnsweredByOk) {
  const std::uint64_t job = hold();
  ASSERT_NE(job, 0U);
  store_.answer = store::Written::lost;
  EXPECT_EQ(code_of_end(job), Code::unavailable);
  EXPECT_EQ(outside_.stopped, "");
}

TEST_F(ManagerLoop, ARecordThatEtcdWouldNotTakeIsRefusedByNameBeforeItIsWritten) {
  v1::HoldJobRequest large = request();
  large.set_name(std::string(kMostOfEtcd, 'n'));
  const int writes = store_.writes;
  loop_.on_hold(1, kOperator, large, now_);
  ASSERT_TRUE(outside_.ended);
  EXPECT_EQ(outside_.ended->code, Code::exhausted);
  EXPECT_THAT(outside_.ended->words, HasSubstr("the job's record takes 153"));
  EXPECT_THAT(outside_.ended->words, HasSubstr("KiB; allowed: 1024"));
  EXPECT_EQ(store_.writes, writes);
  EXPECT_TRUE(loop_.records().empty());
}

/// With what a record gets later: the switches' boots, and why it ends.
TEST_F(ManagerLoop, ARecordThatIsTakenFitsIntoEtcd) {
  v1::HoldJobRequest large = request();
  large.set_name(std::string((1 << 20) - 1000, 'n'));
  loop_.on_hold(1, kOperator, large, now_);
  EXPECT_EQ(loop_.records().size(), 1U);
  EXPECT_GT(store_.longest, std::size_t{1000} << 10);
  EXPECT_LT(store_.longest, kMostOfEtcd - (std::size_t{256} << 10));
}

/// A manager that has begun with term 1.7, and whose switch has not answered yet.
class ManagerClaim : public ManagerLoop {
 protected:
  ManagerClaim() { now_ = 100'000; }

  /// Of the switch: who has it, and since when he is silent.
  void say_who_leads(std::uint64_t epoch, std::optional<std::uint64_t> silent_ms) {
    v1::ClaimFabricResponse holder;
    holder.mutable_highest()->set_epoch(epoch);
    holder.mutable_highest()->set_number(9);
    holder.set_holder("mgr2");
    if (silent_ms) {
      holder.set_holder_heard_ms(*silent_ms);
    }
    begun_.on_claimed(0, {Code::over, "term 1.7 is over"}, holder, now_);
  }

  std::string why_not(const Caller& caller = kOperator) {
    try {
      claimed_ = begun_.claim(caller, now_);
      return "";
    } catch (const Loop::Refused& refused) {
      return refused.what();
    }
  }

  FakeOutside said_;
  v1::ClaimResponse claimed_;
  Loop begun_{site_, store_, said_, {"mgr1", {1, 7}}};
};

TEST_F(ManagerClaim, AManagerWhoseFirstClaimIsRefusedWaitsAndTellsWhy) {
  begun_.begin(now_);
  say_who_leads(3, 1000);
  EXPECT_EQ(said_.stopped, "");
  EXPECT_EQ(begun_.doubt(),
            "leaf: term 1.7 is over; no orders are given until `weirctl fabric claim`, or `adopt`");
  EXPECT_TRUE(begun_.picture(kOperator).awaits_claim());
  const int writes = store_.writes;
  begun_.on_hold(1, kOperator, request(), now_);
  ASSERT_TRUE(said_.ended);
  EXPECT_EQ(said_.ended->code, Code::unavailable);
  EXPECT_EQ(said_.ended->words, begun_.doubt());
  EXPECT_EQ(store_.writes, writes);
}

TEST_F(ManagerClaim, AManagerThatASwitchHasTakenBeforeIsFenced) {
  begun_.begin(now_);
  begun_.on_claimed(0, {}, {}, now_);
  begun_.on_watch_ended(0, {Code::no_answer, "the stream broke"}, now_);
  say_who_leads(3, 1000);
  EXPECT_EQ(said_.stopped, "term 1.7 is over");
}

TEST_F(ManagerClaim, TakesNoSwitchFromAManagerThatLives) {
  begun_.begin(now_);
  say_who_leads(3, 1000);
  EXPECT_EQ(why_not(), "leaf obeys mgr2 with term 3.9, heard 1 s ago; allowed: a claim when that "
                       "manager has been stopped for 10 s");
  now_ += 8'999;
  EXPECT_THAT(why_not(), HasSubstr("heard 9 s ago"));
  EXPECT_EQ(said_.begins_again, "");
  now_ += 1;
  EXPECT_EQ(why_not(), "");
}

/// The epoch of a switch that has restarted since may be the only trace of the last claims, each of
/// which gave ids.
TEST_F(ManagerClaim, StoresAnEpochThatNobodyKnowsAndIdsThatNobodyHas) {
  v1::FabricRecord record;
  record.set_schema(1);
  record.set_epoch(1);
  record.set_starts(7);
  record.set_next_ring(2147483711);
  record.set_next_job(64);
  store_.items = {{"fabric", record.SerializeAsString()}};
  begun_.begin(now_);
  say_who_leads(3, std::nullopt);
  ASSERT_EQ(why_not(), "");
  record.set_epoch(4);
  record.set_next_ring(2147483711 + 3 * (1 << 24));
  record.set_next_job(64 + 3 * (1 << 24));
  record.set_next_allocation(50331648);
  EXPECT_EQ(store_.fabric.DebugString(), record.DebugString());
  EXPECT_EQ(claimed_.epoch(), 4U);
  EXPECT_EQ(claimed_.next_ring(), 2197815359U);
  EXPECT_EQ(claimed_.next_job(), 50331712U);
  EXPECT_EQ(said_.begins_again, "root has claimed the fabric: epoch 4, rings from 2197815359, jobs "
                                "from 50331712");
  EXPECT_THAT(why_not(), HasSubstr("the manager ends")) << "it leads no more";
}

TEST_F(ManagerClaim, OfABackupItAsksByATermThatTakesNoSwitch) {
  begun_.begin(now_, Origin::backup);
  const std::vector<std::pair<std::uint64_t, std::uint64_t>> none{{0, 0}};
  EXPECT_EQ(said_.terms, none);
  EXPECT_EQ(why_not(), "leaf has not said yet whom it obeys; allowed: a claim in 10 s");
  begun_.on_claimed(0, {Code::no_answer, "no answer"}, {}, now_);
  EXPECT_EQ(why_not(), "");
  EXPECT_EQ(store_.fabric.epoch(), 2U);
}

TEST_F(ManagerClaim, IsForOperatorsOfAManagerThatLeads) {
  begun_.begin(now_);
  EXPECT_EQ(why_not(), "leaf has not said yet whom it obeys; allowed: a claim in 10 s");
  begun_.on_claimed(0, {Code::ok, ""}, {}, now_);
  const Caller tenant{.name = "red", .is_operator = false};
  EXPECT_EQ(why_not(tenant), "certificate: found 'red'; allowed: a name under operators");
  store_.answer = store::Written::lost;
  EXPECT_EQ(why_not(), "the manager's store does not answer; claim once more");
  store_.lead.standing = store::Standing::in_doubt;
  begun_.on_time(now_);
  EXPECT_EQ(why_not(), "the manager does not know whether it leads: this is from its memory; "
                       "allowed: a claim at a manager that leads");
  EXPECT_EQ(said_.begins_again, "");
}

TEST_F(ManagerClaim, IsRefusedWhereNoIdsAreLeft) {
  v1::FabricRecord record;
  record.set_schema(1);
  record.set_epoch(1);
  record.set_next_ring(4293918721);
  store_.items = {{"fabric", record.SerializeAsString()}};
  begun_.begin(now_);
  begun_.on_claimed(0, {Code::ok, ""}, {}, now_);
  EXPECT_EQ(why_not(),
            "ids of rings: a claim passes 16777216 for each epoch from 1 on, the highest "
            "that is known is 1, and 1048574 ids are free; allowed: another name for the "
            "fabric, with an empty store");
}

/// One epoch more would be none.
TEST_F(ManagerClaim, IsRefusedWhereASwitchKnowsTheLastEpoch) {
  begun_.begin(now_);
  say_who_leads(UINT64_MAX, std::nullopt);
  EXPECT_THAT(why_not(), HasSubstr("the highest that is known is 18446744073709551615"));
  EXPECT_EQ(said_.begins_again, "");
}

} // namespace
} // namespace weir::jobs::manager_loop_test
