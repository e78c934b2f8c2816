// SPDX-License-Identifier: BSD-3-Clause

/// A tenant who tries what is not his (docs/fabric.md). Allocations have a test of their own.

#include "manager_fixture.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <gmock/gmock.h>
#include <string>

namespace weir::jobs::manager_rights_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using namespace manager_fixture;

const Caller kRed{.name = "red"};
const Caller kBlue{.name = "blue"};
const Caller kGreen{.name = "green"};

/// Green has host0 alone; red and blue have all, and one job each.
Site with_tenants() {
  Site site = make_site();
  site.tenants = {{.name = "red", .hosts = {}, .jobs = 1},
                  {.name = "blue", .hosts = {}, .jobs = 1},
                  {.name = "green", .hosts = {"host0"}}};
  return site;
}

class ManagerRights : public ManagerLoop {
 protected:
  ManagerRights() : ManagerLoop(with_tenants()) {
    red_job_ = loop_.records().size() + 1;
    EXPECT_EQ(hold_refusal(kRed, request_of(kRed)), "");
    EXPECT_EQ(loop_.records().size(), 1U);
  }

  static v1::HoldJobRequest request_of(const Caller& caller) {
    v1::HoldJobRequest made = request();
    made.set_tenant(caller.name);
    made.set_request_id(caller.name + std::string(16 - caller.name.size(), 'r'));
    return made;
  }

  std::string hold_refusal(const Caller& caller, const v1::HoldJobRequest& request) {
    outside_.ended.reset();
    loop_.on_hold(++calls_, caller, request, now_);
    return outside_.ended ? outside_.ended->words : "";
  }

  template <typename Work>
  static std::string refusal_of(Work work) {
    try {
      work();
      return "";
    } catch (const Loop::Refused& refused) {
      return refused.what();
    }
  }

  std::uint64_t red_job_ = 0;
  CallId calls_ = 10;
};

TEST_F(ManagerRights, NobodyAsksInAnothersName) {
  EXPECT_EQ(hold_refusal(kBlue, request_of(kRed)),
            "tenant: found 'red'; allowed: 'blue', whose certificate this is");
  v1::HoldJobRequest nobodys = request_of(kBlue);
  nobodys.clear_tenant();
  EXPECT_EQ(hold_refusal(kBlue, nobodys),
            "tenant: found ''; allowed: 'blue', whose certificate this is");
}

TEST_F(ManagerRights, HostsAndQuotaAreTheTenants) {
  EXPECT_EQ(hold_refusal(kGreen, request_of(kGreen)),
            "rank 1: found host1, which is not tenant green's; allowed: host0");
  v1::HoldJobRequest second = request_of(kRed);
  second.set_request_id(std::string(16, 's'));
  EXPECT_EQ(hold_refusal(kRed, second), "tenant red: needs 1 of jobs, 0 are free: it has 1 of 1");
}

/// The number of another's request is of no use.
TEST_F(ManagerRights, ARequestIsItsOwners) {
  v1::HoldJobRequest stolen = request_of(kBlue);
  stolen.set_request_id(request_of(kRed).request_id());
  EXPECT_EQ(hold_refusal(kBlue, stolen), "");
  EXPECT_EQ(loop_.records().size(), 2U) << "a job of its own";
}

TEST_F(ManagerRights, AnothersJobIsAsIfItWereNotThere) {
  const std::string words = fmt::format("job: found {}; allowed: a job of the list", red_job_);
  EXPECT_EQ(refusal_of([&] { loop_.end_job(kBlue, red_job_, "", now_); }), words);
  EXPECT_EQ(loop_.records().at(red_job_).state(), v1::JobRecord::PLACING);
  EXPECT_THAT(loop_.jobs(kBlue), IsEmpty());
  EXPECT_THAT(refusal_of([&] { loop_.explain(kBlue, fmt::format("{}", red_job_)); }),
              HasSubstr("under operators"));
  EXPECT_EQ(loop_.picture(kBlue).jobs_size(), 0);
  EXPECT_EQ(loop_.picture(kRed).jobs_size(), 1);
}

/// Its room would count as free.
TEST_F(ManagerRights, NobodyTakesThePlaceOfAnothersJob) {
  v1::HoldJobRequest greedy = request_of(kBlue);
  greedy.set_replaces(red_job_);
  EXPECT_EQ(hold_refusal(kBlue, greedy), "replaces: found 1; allowed: a job of the same owner");
  greedy.set_replaces(99);
  EXPECT_EQ(hold_refusal(kBlue, greedy), "replaces: found 99; allowed: a job of the same owner");
}

TEST_F(ManagerRights, ReasonsAreForOperators) {
  v1::DrainRequest drain;
  drain.set_kind("switch");
  drain.set_name("leaf");
  drain.set_why("fan of rack 3");
  loop_.drain({.name = "ann", .is_operator = true}, drain, now_);
  drain.set_kind("host");
  drain.set_name("host1");
  loop_.drain({.name = "ann", .is_operator = true}, drain, now_);
  loop_.on_watch_ended(0, {Code::no_answer, "no answer from 192.0.2.11:9465"}, now_);
  EXPECT_EQ(loop_.picture(kRed).switches(0).drained(), "drained");
  EXPECT_THAT(loop_.picture(kRed).DebugString(), Not(HasSubstr("192.0.2.11")));
  EXPECT_THAT(loop_.picture(kOperator).DebugString(), HasSubstr("192.0.2.11"));
  EXPECT_THAT(loop_.picture(kRed).DebugString(), Not(HasSubstr("fan of rack 3")));
  EXPECT_THAT(loop_.picture(kOperator).switches(0).drained(), HasSubstr("ann: fan of rack 3"));
}

TEST_F(ManagerRights, OrdersAreForOperators) {
  v1::DrainRequest drain;
  drain.set_kind("switch");
  drain.set_name("leaf");
  v1::UndrainRequest undrain;
  undrain.set_kind("switch");
  undrain.set_name("leaf");
  const std::string words = "certificate: found 'red'; allowed: a name under operators";
  EXPECT_EQ(refusal_of([&] { loop_.drain(kRed, drain, now_); }), words);
  EXPECT_EQ(refusal_of([&] { loop_.undrain(kRed, undrain, now_); }), words);
  EXPECT_EQ(refusal_of([&] { loop_.claim(kRed, now_); }), words);
  EXPECT_EQ(refusal_of([&] { loop_.explain(kRed, "leaf"); }), words);
  EXPECT_EQ(refusal_of([&] { loop_.allocations(kRed); }),
            "certificate: found 'red'; allowed: a name under schedulers or under operators");
}

} // namespace
} // namespace weir::jobs::manager_rights_test
