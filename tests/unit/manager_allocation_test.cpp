// SPDX-License-Identifier: BSD-3-Clause

/// What schedulers grant, and who may do what by a token (docs/fabric.md, "Slurm").

#include "jobs/hexadecimal.hpp"
#include "manager_fixture.hpp"

#include <gtest/gtest.h>

#include <gmock/gmock.h>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace weir::jobs::manager_allocation_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using namespace manager_fixture;

const Caller kScheduler{.name = "slurmctld", .is_scheduler = true};
const Caller kOtherScheduler{.name = "other", .is_scheduler = true};
const Caller kNobody{};
const std::string kName = "slurm:prod:4711";

/// Tenant blue has host1 alone, and one job at once; many has 20 hosts.
Site with_tenants() {
  Site site = make_site();
  site.tenants = {{.name = "red", .hosts = {}},
                  {.name = "blue", .hosts = {"host1"}, .jobs = 1, .rings = 1},
                  {.name = "many", .hosts = std::vector<std::string>(20, "h")}};
  return site;
}

class ManagerAllocation : public ManagerLoop {
 protected:
  ManagerAllocation() : ManagerLoop(with_tenants()) {}

  static v1::GrantAllocationRequest wish(const std::string& hosts = "host[0-1]",
                                         const std::string& tenant = "red",
                                         const std::string& name = kName) {
    v1::GrantAllocationRequest request;
    request.set_name(name);
    request.set_hosts(hosts);
    request.set_tenant(tenant);
    return request;
  }

  /// What comes of it: "" or the code and the words.
  template <typename Work>
  static std::string refusal_of(Work work) {
    try {
      work();
      return "";
    } catch (const Loop::Refused& refused) {
      return fmt::format("{}: {}", name_of(refused.code()), refused.what());
    }
  }

  static std::string name_of(Code code) {
    switch (code) {
    case Code::invalid:
      return "invalid";
    case Code::not_allowed:
      return "not allowed";
    case Code::not_found:
      return "not found";
    case Code::impossible:
      return "impossible";
    case Code::unavailable:
      return "unavailable";
    default:
      return "another";
    }
  }

  std::uint64_t grant(const Caller& caller, const v1::GrantAllocationRequest& request) {
    return loop_.grant(caller, request, now_);
  }

  std::string grant_refusal(const Caller& caller, const v1::GrantAllocationRequest& request) {
    return refusal_of([&] { grant(caller, request); });
  }

  std::string issue_refusal(const Caller& caller, const std::string& name = kName) {
    return refusal_of([&] { loop_.issue_token(caller, name, "t"); });
  }

  std::string end_refusal(const Caller& caller, const std::string& name = kName) {
    return refusal_of([&] { loop_.end_allocation(caller, name, now_); });
  }

  static v1::HoldJobRequest request_of(std::uint64_t allocation, const std::string& token) {
    v1::HoldJobRequest made = request();
    made.set_allocation(allocation);
    made.set_token(token);
    return made;
  }

  /// "": it is held.
  std::string hold_refusal(const Caller& caller, const v1::HoldJobRequest& request) {
    outside_.ended.reset();
    loop_.on_hold(++calls_, caller, request, now_);
    return outside_.ended
               ? fmt::format("{}: {}", name_of(outside_.ended->code), outside_.ended->words)
               : "";
  }

  /// Granted, and with a token for host0.
  std::uint64_t granted(const std::string& token = "secret") {
    const std::uint64_t id = grant(kScheduler, wish());
    loop_.issue_token({.name = "host0"}, kName, token);
    return id;
  }

  CallId calls_ = 10;
};

TEST_F(ManagerAllocation, GrantedAgainItIsTheSame) {
  const std::uint64_t id = grant(kScheduler, wish());
  EXPECT_EQ(grant(kScheduler, wish()), id);
  EXPECT_EQ(grant(kScheduler, wish("host0,host1")), id) << "the same hosts";
  EXPECT_NE(grant(kScheduler, wish("host0", "red", "slurm:prod:4712")), id);
  EXPECT_EQ(grant(kOperator, wish()), id);
  const std::string other = "impossible: allocation slurm:prod:4711: found other hosts or another "
                            "tenant; allowed: host0, host1, tenant 'red', as it was granted, or "
                            "its end before";
  EXPECT_EQ(grant_refusal(kScheduler, wish("host0")), other);
  EXPECT_EQ(grant_refusal(kOperator, wish("host[0-1]", "")), other);
  EXPECT_EQ(grant_refusal(kOtherScheduler, wish()),
            "not allowed: certificate: found 'other'; allowed: 'slurmctld', which has granted "
            "slurm:prod:4711");
}

TEST_F(ManagerAllocation, IsOfHostsAndATenantThatThereAre) {
  EXPECT_EQ(grant_refusal(kScheduler, wish("host[0-2]")),
            "invalid: hosts: found 'host2'; allowed: hosts of the topology");
  EXPECT_EQ(grant_refusal(kScheduler, wish("leaf")),
            "invalid: hosts: found 'leaf'; allowed: hosts of the topology");
  EXPECT_EQ(
      grant_refusal(kScheduler, wish("host[0")),
      "invalid: hosts: found 'host[0'; allowed: names as host[0-3,7],login1, at most 65536 in "
      "64 KiB");
  EXPECT_EQ(grant_refusal(kScheduler, wish("host0", "green")),
            "invalid: tenant: found 'green'; allowed: a name under tenants");
  EXPECT_EQ(grant_refusal(kScheduler, wish("host[0-1]", "blue")),
            "not allowed: hosts: found host0, which is not tenant blue's; allowed: host1");
  EXPECT_EQ(grant_refusal(kScheduler, wish("host1", "blue")), "");
  EXPECT_EQ(grant_refusal(kScheduler, wish("host1", "many")),
            "not allowed: hosts: found host1, which is not tenant many's; allowed: h, h, h, h, h, "
            "h, h, h, h, h, h, h, h, h, h, h and 4 more");
  for (const std::string& name : {std::string(), std::string("a b"), std::string(129, 'a')}) {
    EXPECT_THAT(grant_refusal(kScheduler, wish("host0", "red", name)),
                HasSubstr("invalid: name: found '"))
        << name;
  }
}

/// Else a user's job has no quota, and all hosts, if he names no account.
TEST_F(ManagerAllocation, IsNobodysByAnOperatorAlone) {
  EXPECT_EQ(grant_refusal(kScheduler, wish("host0", "")),
            "invalid: tenant: found none; allowed: a name under tenants");
  EXPECT_EQ(grant_refusal(kOperator, wish("host0", "")), "");
}

TEST_F(ManagerLoop, IsNobodysWhereNobodyIsATenant) {
  v1::GrantAllocationRequest request;
  request.set_name(kName);
  request.set_hosts("host0");
  EXPECT_NO_THROW(loop_.grant(kScheduler, request, now_));
}

/// A status has no room for more, and who reads it neither.
TEST_F(ManagerAllocation, ARefusalNeverRepeatsAllThatWasSaid) {
  const std::string big(1 << 19, 'x');
  for (const std::string& refusal :
       {grant_refusal(kScheduler, wish(big)), grant_refusal(kScheduler, wish("host0", big)),
        grant_refusal(kScheduler, wish("host0", "red", big)), end_refusal(kScheduler, big),
        issue_refusal(kNobody, big)}) {
    EXPECT_THAT(refusal, HasSubstr("x…'; allowed: "));
    EXPECT_LT(refusal.size(), 512U);
  }
}

TEST_F(ManagerAllocation, IsForSchedulersAndOperators) {
  const std::string words =
      "not allowed: certificate: found '{}'; allowed: a name under schedulers or under operators";
  grant(kScheduler, wish());
  for (const std::string name : {"red", "host0", ""}) {
    const Caller caller{.name = name};
    EXPECT_EQ(grant_refusal(caller, wish()), fmt::format(fmt::runtime(words), name));
    EXPECT_EQ(end_refusal(caller), fmt::format(fmt::runtime(words), name));
    EXPECT_THAT(refusal_of([&] { loop_.allocations(caller); }), HasSubstr("under schedulers"));
  }
  EXPECT_THAT(end_refusal(kOtherScheduler), HasSubstr("allowed: 'slurmctld', which has granted"));
  EXPECT_EQ(end_refusal(kScheduler, "slurm:prod:1"),
            "not found: allocation: found 'slurm:prod:1'; allowed: one that is granted");
  EXPECT_THAT(loop_.allocations(kOtherScheduler), IsEmpty());
  ASSERT_EQ(loop_.allocations(kOperator).size(), 1U);
  EXPECT_EQ(loop_.allocations(kScheduler).front().name(), kName);
}

TEST_F(ManagerAllocation, SchedulersMayDoNothingElse) {
  EXPECT_THAT(hold_refusal(kScheduler, request()), HasSubstr("not allowed: tenant: found ''"));
  const std::uint64_t job = hold();
  EXPECT_THAT(refusal_of([&] { loop_.end_job(kScheduler, job, "", now_); }),
              HasSubstr("not found"));
  EXPECT_THAT(refusal_of([&] { loop_.drain(kScheduler, {}, now_); }), HasSubstr("under operators"));
  EXPECT_THAT(refusal_of([&] { loop_.claim(kScheduler, now_); }), HasSubstr("under operators"));
  EXPECT_THAT(loop_.jobs(kScheduler), IsEmpty());
}

TEST_F(ManagerAllocation, ItsHostsAloneGetTokens) {
  grant(kScheduler, wish("host0"));
  EXPECT_EQ(issue_refusal({.name = "host0"}), "");
  const std::string words = "not allowed: certificate: found '{}'; allowed: that of a host of {}, "
                            "while it is granted";
  for (const std::string& name :
       {kName, std::string("slurm:prod:1")}) { // nobody hears whether there is one
    for (const Caller& caller : {Caller{.name = "host1"}, kScheduler, kOperator, kNobody}) {
      EXPECT_EQ(issue_refusal(caller, name), fmt::format(fmt::runtime(words), caller.name, name));
    }
  }
  EXPECT_THAT(issue_refusal(kNobody, std::string(129, 'n')), HasSubstr("invalid: name: found "));
}

/// FIPS 180-2, the first example.
TEST_F(ManagerAllocation, TheStoreHasTheDigestAloneAndAJobNeither) {
  const std::string token = "abc";
  const std::uint64_t id = granted(token);
  EXPECT_EQ(hold_refusal(kNobody, request_of(id, token)), "");
  v1::AllocationRecord record;
  record.ParseFromString(store_.written.at(fmt::format("allocation/{}", id)));
  ASSERT_EQ(record.tokens_size(), 1);
  EXPECT_EQ(hexadecimal(record.tokens(0).sha256()),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  ASSERT_TRUE(store_.written.contains("job/1"));
  for (const auto& [key, value] : store_.written) {
    EXPECT_THAT(value, Not(HasSubstr(token))) << key;
  }
}

TEST_F(ManagerAllocation, ATokenIsForJobsOfItsAllocationAlone) {
  const std::uint64_t id = granted();
  const std::uint64_t other = grant(kScheduler, wish("host1", "red", "slurm:prod:4712"));
  loop_.issue_token({.name = "host1"}, "slurm:prod:4712", "other's");
  const std::string words = "not allowed: token: found one that is not allocation {}'s; allowed: "
                            "one that was issued for it, until it ends";
  for (const auto& [allocation, token] : std::vector<std::pair<std::uint64_t, std::string>>{
           {id, "other's"}, {other, "secret"}, {id, ""}, {id, "secre"}, {99, "secret"}}) {
    EXPECT_EQ(hold_refusal(kNobody, request_of(allocation, token)),
              fmt::format(fmt::runtime(words), allocation));
    EXPECT_EQ(hold_refusal(kOperator, request_of(allocation, token)),
              fmt::format(fmt::runtime(words), allocation));
  }
  EXPECT_EQ(hold_refusal(kNobody, request_of(other, "other's")),
            "not allowed: rank 0: found host0, which is not of allocation slurm:prod:4712; "
            "allowed: host1");
  EXPECT_TRUE(loop_.records().empty());
  EXPECT_EQ(hold_refusal(kNobody, request_of(id, "secret")), "");
  EXPECT_EQ(loop_.records().size(), 1U);
}

/// Else he fills the manager's memory, and drives out what it knows of others.
TEST_F(ManagerAllocation, NothingIsKeptOfWhoHasAForgedToken) {
  const std::uint64_t id = granted();
  v1::HoldJobRequest forged = request_of(id, "forged");
  forged.set_name("stranger");
  EXPECT_THAT(hold_refusal(kNobody, forged), HasSubstr("not allowed: token"));
  EXPECT_EQ(loop_.counts().requests.at("refused"), 0U);
  EXPECT_THAT(refusal_of([&] { loop_.explain(kOperator, "stranger"); }), HasSubstr("not found"));
  forged.set_token("secret");
  forged.set_tenant("blue");
  EXPECT_THAT(hold_refusal(kNobody, forged), HasSubstr("not allowed: tenant"));
  EXPECT_EQ(loop_.counts().requests.at("refused"), 1U);
  EXPECT_THAT(loop_.explain(kOperator, "stranger"), HasSubstr("found 'blue'"));
}

/// Whoever may ask: of what he says the manager keeps the beginning.
TEST_F(ManagerAllocation, LittleIsKeptOfARefusal) {
  v1::HoldJobRequest big = request();
  big.set_name(std::string(253, 'n') + "€€");
  big.set_request_id(std::string(1 << 19, 'r'));
  EXPECT_THAT(hold_refusal(kOperator, big), HasSubstr("request_id: found 524288 bytes"));
  const std::string kept = std::string(253, 'n');
  EXPECT_THAT(loop_.explain(kOperator, kept), HasSubstr(kept + "): request_id"));
  const std::string id = hexadecimal(std::string(17, 'r'));
  EXPECT_THAT(loop_.explain(kOperator, id.substr(2)), HasSubstr("): request_id"));
  EXPECT_THAT(refusal_of([&] { loop_.explain(kOperator, id); }), HasSubstr("not found"));
  big = request();
  big.set_name("words");
  big.set_tenant(std::string(1 << 19, 't'));
  hold_refusal(kOperator, big);
  EXPECT_LT(loop_.explain(kOperator, "words").size(), 4096U);
}

TEST_F(ManagerAllocation, TheTenantIsTheAllocations) {
  const std::uint64_t id = granted();
  v1::HoldJobRequest blue = request_of(id, "secret");
  blue.set_tenant("blue");
  EXPECT_EQ(
      hold_refusal(kNobody, blue),
      "not allowed: tenant: found 'blue'; allowed: 'red', whose allocation slurm:prod:4711 is");
  EXPECT_EQ(hold_refusal(kNobody, request_of(id, "secret")), "");
  EXPECT_EQ(loop_.records().at(1).request().tenant(), "red");
  EXPECT_EQ(loop_.records().at(1).allocation(), kName);
  EXPECT_THAT(loop_.explain(kOperator, "1"), HasSubstr("\nit is of allocation slurm:prod:4711\n"));
}

/// Whatever certificate a caller has or lacks.
TEST_F(ManagerAllocation, ItsJobsAreOfWhoHasAToken) {
  const std::uint64_t id = granted();
  ASSERT_EQ(hold_refusal(kNobody, request_of(id, "secret")), "");
  EXPECT_EQ(hold_refusal({.name = "host0"}, request_of(id, "secret")),
            "another: a later call holds the job")
      << "the same job";
  EXPECT_EQ(loop_.records().size(), 1U);
  EXPECT_THAT(loop_.jobs(kNobody), IsEmpty());
  EXPECT_THAT(refusal_of([&] { loop_.end_job(kNobody, 1, "", now_); }), HasSubstr("not found"));
  EXPECT_THAT(refusal_of([&] { loop_.end_job({.name = "host0"}, 1, "", now_); }),
              HasSubstr("not found"));
  const Caller bearer = loop_.bearer_of(kNobody, id, "secret");
  EXPECT_EQ(refusal_of([&] { loop_.end_job(bearer, 1, "", now_); }), "");
}

TEST_F(ManagerAllocation, ATokenIsNotForOthersJobs) {
  const Caller bearer = loop_.bearer_of(kOperator, granted(), "secret");
  const std::uint64_t job = hold(); // root's
  EXPECT_THAT(refusal_of([&] { loop_.end_job(bearer, job, "", now_); }), HasSubstr("not found"));
  EXPECT_THAT(loop_.jobs(bearer), IsEmpty());
  EXPECT_THAT(loop_.jobs(kNobody), IsEmpty()) << "who has no name either is not root";
}

TEST_F(ManagerAllocation, ItsEndEndsItsJobsAndSaysWho) {
  const std::uint64_t id = granted();
  ASSERT_EQ(hold_refusal(kNobody, request_of(id, "secret")), "");
  EXPECT_THAT(loop_.end_allocation(kScheduler, kName, now_), ElementsAre(1));
  ASSERT_TRUE(outside_.ended);
  EXPECT_EQ(outside_.ended->words, "allocation slurm:prod:4711 was ended by slurmctld");
  EXPECT_EQ(outside_.notes.at("allocation_ended"), outside_.ended->words);
  EXPECT_EQ(loop_.records().at(1).state(), v1::JobRecord::ENDING);
  EXPECT_EQ(store_.written.at(fmt::format("allocation/{}", id)), "");
  EXPECT_THAT(hold_refusal(kNobody, request_of(id, "secret")), HasSubstr("not allowed: token"));
  EXPECT_GT(grant(kScheduler, wish()), id) << "its tokens are not for the next of this name";
}

/// A scheduler may have forgotten the job that had its number before.
TEST_F(ManagerAllocation, GrantedAnewItIsAnother) {
  const std::uint64_t id = granted();
  ASSERT_EQ(hold_refusal(kNobody, request_of(id, "secret")), "");
  v1::GrantAllocationRequest anew = wish("host0");
  anew.set_anew(true);
  EXPECT_THAT(grant_refusal(kOtherScheduler, anew), HasSubstr("which has granted"));
  EXPECT_EQ(grant_refusal(kScheduler, anew), "");
  ASSERT_TRUE(outside_.ended);
  EXPECT_EQ(outside_.ended->words, "allocation slurm:prod:4711 was ended by slurmctld");
  EXPECT_EQ(loop_.records().at(1).state(), v1::JobRecord::ENDING);
  EXPECT_EQ(store_.written.at(fmt::format("allocation/{}", id)), "");
  EXPECT_THAT(hold_refusal(kNobody, request_of(id, "secret")), HasSubstr("not allowed: token"));
  ASSERT_EQ(loop_.allocations(kOperator).size(), 1U);
  EXPECT_GT(loop_.allocations(kOperator).front().id(), id);
  EXPECT_THAT(loop_.allocations(kOperator).front().hosts(), ElementsAre("host0"));
}

/// Both in one step, or neither.
TEST_F(ManagerAllocation, WhatIsNotGrantedAnewStays) {
  const std::uint64_t id = granted();
  ASSERT_EQ(hold_refusal(kNobody, request_of(id, "secret")), "");
  v1::GrantAllocationRequest anew = wish("host0");
  anew.set_anew(true);
  const int writes = store_.writes;
  store_.answer = store::Written::lost;
  EXPECT_THAT(grant_refusal(kScheduler, anew), HasSubstr("unavailable: "));
  EXPECT_EQ(store_.writes, writes + 1);
  EXPECT_EQ(loop_.records().at(1).state(), v1::JobRecord::PLACING);
  EXPECT_EQ(loop_.allocations(kOperator).front().id(), id);
}

TEST_F(ManagerAllocation, ItsEndLeavesOthersJobs) {
  granted();
  const std::uint64_t job = hold();
  EXPECT_THAT(loop_.end_allocation(kScheduler, kName, now_), IsEmpty());
  EXPECT_EQ(loop_.records().at(job).state(), v1::JobRecord::PLACING);
}

TEST_F(ManagerAllocation, AnEndThatIsNotStoredIsNone) {
  const std::uint64_t id = granted();
  ASSERT_EQ(hold_refusal(kNobody, request_of(id, "secret")), "");
  store_.answer = store::Written::lost;
  EXPECT_THAT(end_refusal(kScheduler), HasSubstr("unavailable: "));
  EXPECT_EQ(loop_.records().at(1).state(), v1::JobRecord::PLACING);
}

/// Another manager may know better: clients go on to it then, and by no other answer.
TEST_F(ManagerAllocation, AManagerWhoseStoreIsLostSendsAllAway) {
  const std::uint64_t id = granted();
  store_.answer = store::Written::lost;
  EXPECT_THAT(end_refusal(kScheduler), HasSubstr("unavailable: ")) << "now it knows";
  EXPECT_THAT(grant_refusal(kScheduler, wish()), HasSubstr("unavailable: "));
  EXPECT_THAT(grant_refusal(kScheduler, wish("host2")), HasSubstr("unavailable: "));
  EXPECT_THAT(end_refusal(kScheduler, "slurm:prod:1"), HasSubstr("unavailable: "));
  EXPECT_THAT(issue_refusal({.name = "host0"}, "slurm:prod:1"), HasSubstr("unavailable: "));
  EXPECT_THAT(refusal_of([&] { loop_.bearer_of(kNobody, 99, "t"); }), HasSubstr("unavailable: "));
  EXPECT_EQ(refusal_of([&] { loop_.bearer_of(kNobody, id, "secret"); }), "");
  EXPECT_THAT(grant_refusal(kNobody, wish()), HasSubstr("not allowed: ")) << "whoever leads";
}

/// It was done, and nobody could tell.
TEST_F(ManagerAllocation, AnEndWhoseAnswerIsLostIsFoundInTheStore) {
  const std::uint64_t id = granted();
  ASSERT_EQ(hold_refusal(kNobody, request_of(id, "secret")), "");
  store_.answer = store::Written::lost;
  EXPECT_THAT(end_refusal(kScheduler), HasSubstr("unavailable: "));
  store_.items = {{"job/1", store_.written.at("job/1")}};
  store_.answer = store::Written::done;
  now_ += kReadAgain;
  loop_.on_time(now_);
  EXPECT_EQ(loop_.records().at(1).state(), v1::JobRecord::ENDING);
  EXPECT_THAT(loop_.allocations(kOperator), IsEmpty());
}

/// Who has ended it may die before its jobs are told.
TEST_F(ManagerAllocation, ANewLeaderEndsJobsWhoseAllocationIsGone) {
  const std::uint64_t id = granted();
  ASSERT_EQ(hold_refusal(kNobody, request_of(id, "secret")), "");
  store_.items = {{"job/1", store_.written.at("job/1")}};
  Loop next(site_, store_, outside_, {"mgr2", {1, 8}});
  next.begin(now_);
  EXPECT_EQ(next.records().at(1).state(), v1::JobRecord::ENDING);
  EXPECT_EQ(next.records().at(1).why(), "allocation slurm:prod:4711 has ended");
  store_.items.push_back(
      {fmt::format("allocation/{}", id), store_.written.at(fmt::format("allocation/{}", id))});
  Loop another(site_, store_, outside_, {"mgr3", {1, 9}});
  another.begin(now_);
  EXPECT_EQ(another.records().at(1).state(), v1::JobRecord::PLACING);
  EXPECT_EQ(refusal_of([&] { another.bearer_of(kNobody, id, "secret"); }), "");
}

TEST_F(ManagerAllocation, WhoWaitsIsToldOfItsEnd) {
  const std::uint64_t id = granted();
  v1::DrainRequest drain;
  drain.set_kind("switch");
  drain.set_name("leaf");
  loop_.drain(kOperator, drain, now_);
  v1::HoldJobRequest patient = request_of(id, "secret");
  patient.set_wait_ms(60'000);
  ASSERT_EQ(hold_refusal(kNobody, patient), "");
  ASSERT_TRUE(loop_.records().empty());
  loop_.end_allocation(kScheduler, kName, now_);
  ASSERT_TRUE(outside_.ended);
  EXPECT_EQ(outside_.ended->code, Code::not_allowed);
  EXPECT_EQ(outside_.ended->words, "allocation 1 has ended");
}

/// A call under way may have the token before the last.
TEST_F(ManagerAllocation, TheLastTwoTokensOfAHostCount) {
  const std::uint64_t id = granted("first");
  loop_.issue_token({.name = "host1"}, kName, "other host's");
  loop_.issue_token({.name = "host0"}, kName, "second");
  const auto is_good = [&](const std::string& token) {
    return refusal_of([&] { loop_.bearer_of(kNobody, id, token); }).empty();
  };
  EXPECT_TRUE(is_good("first"));
  loop_.issue_token({.name = "host0"}, kName, "third");
  EXPECT_FALSE(is_good("first"));
  EXPECT_TRUE(is_good("second"));
  EXPECT_TRUE(is_good("third"));
  EXPECT_TRUE(is_good("other host's"));
}

} // namespace
} // namespace weir::jobs::manager_allocation_test
