// SPDX-License-Identifier: BSD-3-Clause

/// A manager whose store has lost its jobs writes them down again from what switches tell
/// (docs/fabric.md, "The store is lost"). What it should write is what the manager wrote that
/// placed them.

#include "manager_fixture.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <gmock/gmock.h>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir::jobs::manager_adoption_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;
using namespace manager_fixture;

const std::vector<std::string> kSwitches{"leaf0", "leaf1", "spine0", "spine1"};
const Caller kScheduler{.name = "slurmctld", .is_scheduler = true};

/// Two leaves with two hosts each, below two spines. Each port has a name of its own.
Site make_tree_site() {
  const std::vector<std::string> hosts{"host0", "host1", "host2", "host3"};
  plan::Topology topology(hosts, kSwitches);
  const plan::LinkTraits traits{.bits_per_second = 100'000'000'000, .latency_ns = 1000};
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    topology.connect(topology.find(hosts[host]), topology.find(kSwitches[host / 2]), traits);
  }
  for (const char* const leaf : {"leaf0", "leaf1"}) {
    for (const char* const spine : {"spine0", "spine1"}) {
      topology.connect(topology.find(leaf), topology.find(spine), traits);
    }
  }
  Site site(std::move(topology));
  site.fabric = "lab";
  site.trees = 2;
  for (plan::LinkId link = 0; link < site.topology().links().size(); ++link) {
    site.ports.push_back(fmt::format("p{}", link));
  }
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    const plan::VertexId vertex = site.topology().find(hosts[host]);
    const plan::LinkId link = site.topology().outgoing(vertex).front();
    site.endpoints[*wire::parse_ip(fmt::format("10.0.0.{}", host + 1))] = {
        vertex,
        {site.index().switch_at(site.topology().link(link).to), plan::Topology::reverse_of(link)}};
  }
  return site;
}

/// An older switch tells labels alone.
enum class Told : std::uint8_t { labels, rings };

/// What switches have, whoever leads.
class Switches {
 public:
  explicit Switches(std::size_t count) : rings_(count) {}

  /// All that they were ordered, which they have done.
  void take(FakeOutside& outside, Loop& loop, Time now) {
    for (const auto& [at, request] : std::exchange(outside.applied, {})) {
      for (const v1::LabelledRing& ring : request.rings()) {
        rings_[at][ring.ring().id()] = ring;
      }
      loop.on_ordered(at, request.order().number(), {}, now);
    }
  }

  void forget(SwitchIndex at) { rings_[at].clear(); }

  void change(const std::function<void(SwitchIndex, v1::LabelledRing&)>& change) {
    for (SwitchIndex at = 0; at < rings_.size(); ++at) {
      for (auto& [id, ring] : rings_[at]) {
        change(at, ring);
      }
    }
  }

  v1::SwitchSeen seen(SwitchIndex at, Told told) const {
    v1::SwitchSeen seen;
    seen.set_boot(fmt::format("boot{}", at));
    seen.set_last_order(UINT64_MAX);
    seen.mutable_room()->set_rings(8);
    seen.mutable_room()->set_members(64);
    seen.mutable_room()->set_frames(1 << 16);
    for (const auto& [id, ring] : rings_[at]) {
      v1::SeenRing& row = *seen.add_rings();
      row.set_id(id);
      row.set_is_managed(true);
      *row.mutable_label() = ring.label();
      if (told == Told::rings) {
        *row.mutable_ring() = ring.ring();
        row.mutable_ring()->clear_nonce();
      }
    }
    return seen;
  }

 private:
  std::vector<std::map<std::uint32_t, v1::LabelledRing>> rings_;
};

class ManagerAdoption : public testing::Test {
 protected:
  ManagerAdoption() {
    before_.begin(now_);
    for (SwitchIndex at = 0; at < kSwitches.size(); ++at) {
      show(before_, at);
    }
    now_ += 10'000; // new leaders wait for their switches
    for (SwitchIndex at = 0; at < kSwitches.size(); ++at) {
      before_.on_seen(at, switches_.seen(at, Told::labels), now_);
    }
  }

  void show(Loop& loop, SwitchIndex at, Told told = Told::rings) {
    v1::ClaimFabricResponse claimed;
    claimed.set_boot(fmt::format("boot{}", at));
    loop.on_claimed(at, {}, claimed, now_);
    loop.on_seen(at, switches_.seen(at, told), now_);
  }

  /// Over both leaves, by two trees. Rank 0 is the last host.
  static v1::HoldJobRequest request(char id = 'r') {
    v1::HoldJobRequest request;
    request.set_request_id(std::string(16, id));
    request.set_name("train");
    request.set_window(8);
    request.set_message_bytes(4096);
    request.set_mtu(1024);
    request.set_rings_wanted(2);
    request.set_rings_least(2);
    request.set_nonce(77);
    request.set_reserve(10'000'000'000);
    for (const char* const address : {"10.0.0.4", "10.0.0.1", "10.0.0.3", "10.0.0.2"}) {
      request.add_members()->add_addresses(address);
    }
    return request;
  }

  /// A job of the manager before, which runs.
  v1::JobRecord placed(const v1::HoldJobRequest& request, const Caller& caller = kOperator) {
    before_.on_hold(++calls_, caller, request, now_);
    switches_.take(outside_before_, before_, now_);
    EXPECT_FALSE(outside_before_.ended) << outside_before_.ended->words;
    return before_.records().rbegin()->second;
  }

  static v1::GrantAllocationRequest granted_hosts() {
    v1::GrantAllocationRequest grant;
    grant.set_name("slurm:prod:4711");
    grant.set_hosts("host[0-3]");
    return grant;
  }

  /// By the token that is issued for it.
  v1::HoldJobRequest request_by_token(std::uint64_t allocation) {
    const std::string token(32, 't');
    before_.issue_token({.name = "host3"}, granted_hosts().name(), token);
    v1::HoldJobRequest wish = request();
    wish.set_allocation(allocation);
    wish.set_token(token);
    return wish;
  }

  /// Its store has what is given, and that it is to adopt.
  Loop& adopting(v1::FabricRecord fabric = {}) {
    fabric.set_schema(1);
    fabric.set_epoch(2);
    fabric.set_next_ring((std::uint64_t{1} << 31) + (1 << 24));
    fabric.set_next_job(1 << 24);
    fabric.set_adopts(true);
    store_.items.push_back({"fabric", fabric.SerializeAsString()});
    after_ = std::make_unique<Loop>(site_, store_, outside_, Loop::Identity{"mgr2", {2, 1}});
    after_->begin(now_);
    return *after_;
  }

  void show_all(Loop& loop) {
    for (SwitchIndex at = 0; at < kSwitches.size(); ++at) {
      show(loop, at);
    }
  }

  /// Their rings were last heard long ago.
  void show_all_silent(Loop& loop) {
    for (SwitchIndex at = 0; at < kSwitches.size(); ++at) {
      v1::ClaimFabricResponse claimed;
      claimed.set_boot(fmt::format("boot{}", at));
      loop.on_claimed(at, {}, claimed, now_);
      v1::SwitchSeen seen = switches_.seen(at, Told::rings);
      for (v1::SeenRing& ring : *seen.mutable_rings()) {
        ring.set_silent_ms(10 * kSilence);
      }
      loop.on_seen(at, seen, now_);
    }
  }

  SwitchIndex at(const std::string& name) const { return *site_.switch_named(name); }

  Time now_ = 1;
  CallId calls_ = 0;
  const Site site_ = make_tree_site();
  Switches switches_{kSwitches.size()};
  FakeStore store_before_;
  FakeStore store_;
  FakeOutside outside_before_;
  FakeOutside outside_;
  Loop before_{site_, store_before_, outside_before_, {"mgr1", {1, 7}}};
  std::unique_ptr<Loop> after_;
};

/// All of the record but how the job was asked for.
TEST_F(ManagerAdoption, WritesAJobDownAsTheManagerDidThatPlacedIt) {
  v1::JobRecord wanted = placed(request());
  ASSERT_EQ(wanted.state(), v1::JobRecord::PLACED);
  ASSERT_EQ(wanted.rings_size(), 2);
  Loop& loop = adopting();
  show_all(loop);
  wanted.mutable_request()->clear_nonce();
  for (v1::RingRecord& ring : *wanted.mutable_rings()) {
    for (v1::PartRecord& part : *ring.mutable_parts()) {
      part.mutable_ring()->clear_nonce();
    }
  }
  ASSERT_EQ(loop.records().size(), 1U);
  EXPECT_EQ(loop.records().begin()->second.DebugString(), wanted.DebugString());
  EXPECT_EQ(loop.doubt(), "");
  EXPECT_FALSE(store_.fabric.adopts());
  EXPECT_TRUE(outside_.removed.empty());
  loop.on_hold(5, kOperator, request(), now_);
  EXPECT_FALSE(outside_.ended) << "its owner has it again";
  EXPECT_EQ(loop.records().size(), 1U);
}

TEST_F(ManagerAdoption, GivesNoOrderAndNoJobUntilEachSwitchHasSpoken) {
  placed(request());
  Loop& loop = adopting();
  for (const char* const name : {"leaf0", "leaf1", "spine0"}) {
    show(loop, at(name));
    EXPECT_TRUE(outside_.watched.at(at(name)).with_rings());
  }
  EXPECT_EQ(loop.doubt(), "jobs that run are being adopted: spine1 must say what rings they have; "
                          "without one: `weirctl fabric adopt --without NAME`");
  loop.on_hold(5, kOperator, request('s'), now_);
  ASSERT_TRUE(outside_.ended);
  EXPECT_EQ(outside_.ended->code, Code::unavailable);
  EXPECT_EQ(outside_.ended->words, loop.doubt());
  EXPECT_TRUE(loop.records().empty());
  EXPECT_TRUE(outside_.removed.empty());
  show(loop, at("spine1"));
  EXPECT_EQ(loop.records().size(), 1U);
}

TEST_F(ManagerAdoption, WaitsForASwitchThatTellsLabelsAlone) {
  placed(request());
  Loop& loop = adopting();
  for (const char* const name : {"leaf0", "leaf1", "spine0"}) {
    show(loop, at(name));
  }
  show(loop, at("spine1"), Told::labels);
  EXPECT_THAT(loop.doubt(), HasSubstr("spine1 must say"));
  EXPECT_TRUE(loop.records().empty());
}

TEST_F(ManagerAdoption, AJobThatLacksAPartEndsAndSaysSo) {
  placed(request());
  switches_.forget(at("spine0"));
  Loop& loop = adopting();
  show_all(loop);
  ASSERT_EQ(loop.records().size(), 1U);
  const v1::JobRecord& record = loop.records().begin()->second;
  EXPECT_EQ(record.state(), v1::JobRecord::ENDING);
  EXPECT_THAT(record.why(), HasSubstr("no switch has the root of ring 21474836"));
  EXPECT_EQ(outside_.removed.size(), 3U) << "where it has parts";
  EXPECT_THAT(outside_.notes["not_adopted"], HasSubstr("(train, 4 hosts) ends: no switch has"));
}

TEST_F(ManagerAdoption, AJobOfWhichARingIsGoneEverywhereEnds) {
  placed(request());
  switches_.change([](SwitchIndex, v1::LabelledRing& ring) { ring.mutable_label()->set_rings(3); });
  Loop& loop = adopting();
  show_all(loop);
  ASSERT_EQ(loop.records().size(), 1U);
  EXPECT_EQ(loop.records().begin()->second.why(), "switches have 2 of its 3 rings");
}

/// A leaf whose part says that another spine is above.
TEST_F(ManagerAdoption, AJobWhosePartsAreNoTreeEnds) {
  placed(request());
  switches_.change([&](SwitchIndex at, v1::LabelledRing& ring) {
    if (at == this->at("leaf0")) {
      v1::Parent& parent = *ring.mutable_ring()->mutable_parent();
      const std::string other = parent.name() == "spine0" ? "spine1" : "spine0";
      parent.set_name(other);
    }
  });
  Loop& loop = adopting();
  show_all(loop);
  ASSERT_EQ(loop.records().size(), 1U);
  EXPECT_THAT(loop.records().begin()->second.why(), HasSubstr("leaf0 has no part of ring 214748"));
}

TEST_F(ManagerAdoption, AJobOfWhichSomeRanksAreInNoPartEnds) {
  placed(request());
  switches_.change([&](SwitchIndex at, v1::LabelledRing& ring) {
    if (at == this->at("leaf1")) {
      ring.mutable_ring()->mutable_children()->RemoveLast();
    }
    for (v1::Child& child : *ring.mutable_ring()->mutable_children()) {
      if (child.switch_below().name() == "leaf1") {
        child.mutable_switch_below()->set_last_rank(child.switch_below().first_rank());
      }
    }
  });
  Loop& loop = adopting();
  show_all(loop);
  ASSERT_EQ(loop.records().size(), 1U);
  EXPECT_THAT(loop.records().begin()->second.why(), HasSubstr("are no tree of its 4 ranks"));
}

/// Another tenant's job by the same request goes on beside it.
TEST_F(ManagerAdoption, TwoOwnersMayHaveOneRequest) {
  placed(request('a'));
  placed(request('b'));
  switches_.change([](SwitchIndex, v1::LabelledRing& ring) {
    v1::FabricLabel& label = *ring.mutable_label();
    label.set_owner(label.request_id() == std::string(16, 'a') ? "red" : "blue");
    label.set_request_id(std::string(16, 'c'));
  });
  Loop& loop = adopting();
  show_all(loop);
  std::vector<std::string> owners;
  for (const auto& [id, record] : loop.records()) {
    EXPECT_EQ(record.state(), v1::JobRecord::PLACED);
    owners.push_back(record.owner());
  }
  EXPECT_THAT(owners, UnorderedElementsAre("red", "blue"));
  EXPECT_TRUE(outside_.removed.empty());
}

/// It runs, perhaps: nobody has heard the switch.
TEST_F(ManagerAdoption, AJobOfTheStoreOnASwitchThatIsLeftOutStays) {
  v1::HoldJobRequest small = request();
  small.mutable_members()->DeleteSubrange(0, 1);
  small.mutable_members()->DeleteSubrange(1, 1); // host0 and host1, both at leaf0
  small.set_rings_wanted(1);
  small.set_rings_least(1);
  const v1::JobRecord there = placed(small);
  ASSERT_EQ(there.rings(0).parts_size(), 1);
  store_.items = {{"job/1", there.SerializeAsString()}};
  v1::FabricRecord fabric;
  fabric.add_adopts_without("leaf0");
  Loop& loop = adopting(fabric);
  for (const char* const name : {"leaf1", "spine0", "spine1"}) {
    show(loop, at(name));
  }
  EXPECT_EQ(loop.doubt(), "");
  EXPECT_EQ(loop.records().size(), 1U);
}

/// The minute in which its owner may be away begins when it may come back.
TEST_F(ManagerAdoption, AnOwnerHasHisTimeAfterALongAdoption) {
  const v1::JobRecord runs = placed(request());
  store_.items = {{"job/1", runs.SerializeAsString()}};
  Loop& loop = adopting();
  for (const char* const name : {"leaf0", "leaf1", "spine0"}) {
    show(loop, at(name));
  }
  now_ += 2 * kOwnerAway;
  show_all_silent(loop);
  ASSERT_EQ(loop.records().size(), 1U);
  EXPECT_EQ(loop.records().begin()->second.state(), v1::JobRecord::PLACED);
  now_ += kOwnerAway;
  show_all_silent(loop);
  EXPECT_EQ(loop.records().begin()->second.state(), v1::JobRecord::ENDING);
}

TEST_F(ManagerAdoption, AClaimLeavesAdoption) {
  placed(request());
  v1::FabricRecord fabric;
  fabric.add_adopts_without("spine1");
  Loop& loop = adopting(fabric);
  for (const char* const name : {"leaf0", "leaf1"}) {
    show(loop, at(name));
  }
  for (const char* const name : {"spine0", "spine1"}) {
    loop.on_claimed(at(name), {Code::no_answer, "no answer"}, {}, now_);
  }
  loop.claim(kOperator, now_);
  EXPECT_FALSE(store_.fabric.adopts());
  EXPECT_EQ(store_.fabric.adopts_without_size(), 0);
}

TEST_F(ManagerAdoption, SwitchesThatAreLeftOutAddUp) {
  placed(request());
  Loop& loop = adopting();
  for (const char* const name : {"leaf0", "leaf1"}) {
    show(loop, at(name));
  }
  for (const char* const name : {"spine0", "spine1"}) {
    EXPECT_THAT(loop.doubt(), HasSubstr(name));
    v1::AdoptRequest without;
    without.add_without(name);
    loop.adopt(kOperator, without, now_);
  }
  EXPECT_EQ(loop.doubt(), "");
}

/// As a scheduler does after a requeue. What the old one's token could it can no more.
TEST_F(ManagerAdoption, OfAnAllocationThatWasGrantedAnewTheLaterOneIsThere) {
  v1::GrantAllocationRequest grant = granted_hosts();
  before_.grant(kScheduler, grant, now_);
  const std::string old_token(32, 'o');
  before_.issue_token({.name = "host3"}, grant.name(), old_token);
  store_.items = {{"allocation/1", store_before_.written.at("allocation/1")}};
  grant.set_anew(true);
  const std::uint64_t allocation = before_.grant(kScheduler, grant, now_);
  ASSERT_EQ(allocation, 2U);
  const v1::HoldJobRequest wish = request_by_token(allocation);
  placed(wish, {});
  Loop& loop = adopting();
  show_all(loop);
  loop.on_hold(5, {}, wish, now_);
  EXPECT_FALSE(outside_.ended) << outside_.ended->words;
  EXPECT_EQ(store_.written.at("allocation/1"), "") << "it is gone";
  v1::HoldJobRequest old = request('o');
  old.set_allocation(1);
  old.set_token(old_token);
  loop.on_hold(6, {}, old, now_);
  ASSERT_TRUE(outside_.ended);
  EXPECT_EQ(outside_.ended->code, Code::not_allowed);
}

/// As after an old store that nobody claimed: then the later one gets a number that nobody has.
TEST_F(ManagerAdoption, AnAllocationTakesNoOthersNumber) {
  before_.grant(kScheduler, granted_hosts(), now_);
  const v1::HoldJobRequest wish = request_by_token(1);
  placed(wish, {});
  v1::AllocationRecord other;
  other.set_schema(1);
  other.set_id(1);
  other.set_name("slurm:prod:12");
  store_.items = {{"allocation/1", other.SerializeAsString()}};
  v1::FabricRecord fabric;
  fabric.set_next_allocation(1 << 24);
  Loop& loop = adopting(fabric);
  for (const char* const name : {"leaf0", "leaf1", "spine0"}) {
    show(loop, at(name));
  }
  store_.unanswered = "fabric"; // by which it would have been over
  show(loop, at("spine1"));
  for (const auto& [key, value] : std::exchange(store_.written, {})) {
    store_.items.push_back({key, value});
  }
  now_ += 1000;
  loop.on_time(now_);
  std::map<std::string, std::uint64_t> numbers;
  for (const v1::Allocation& one : loop.allocations(kOperator)) {
    numbers[one.name()] = one.id();
  }
  EXPECT_EQ(numbers, (std::map<std::string, std::uint64_t>{{"slurm:prod:12", 1},
                                                           {"slurm:prod:4711", 1 << 24}}));
  EXPECT_EQ(loop.records().size(), 1U) << "once";
  EXPECT_EQ(loop.doubt(), "");
  EXPECT_FALSE(store_.fabric.adopts());
}

/// As an old store may have it that nobody claimed, long ago.
TEST_F(ManagerAdoption, OfTwoJobsWithOneNumberOneGetsANewOne) {
  placed(request('a'));
  placed(request('b'));
  switches_.change([](SwitchIndex, v1::LabelledRing& ring) { ring.mutable_label()->set_job(1); });
  Loop& loop = adopting();
  show_all(loop);
  std::vector<std::uint64_t> numbers;
  for (const auto& [id, record] : loop.records()) {
    EXPECT_EQ(record.id(), id);
    EXPECT_EQ(record.state(), v1::JobRecord::PLACED);
    numbers.push_back(id);
  }
  EXPECT_THAT(numbers, ElementsAre(1, 1 << 24));
  EXPECT_EQ(store_.fabric.next_job(), (1U << 24) + 1);
}

TEST_F(ManagerAdoption, GoesOnWithoutASwitchIfItIsTold) {
  placed(request());
  Loop& loop = adopting();
  for (const char* const name : {"leaf0", "leaf1", "spine0"}) {
    show(loop, at(name));
  }
  v1::AdoptRequest wrong;
  wrong.add_without("spine7");
  try {
    loop.adopt(kOperator, wrong, now_);
    FAIL() << "it takes a switch that there is not";
  } catch (const Loop::Refused& refused) {
    EXPECT_STREQ(refused.what(), "without: found 'spine7'; allowed: a switch of the topology");
  }
  v1::AdoptRequest without;
  without.add_without("spine1");
  EXPECT_THROW(loop.adopt({.name = "red"}, without, now_), Loop::Refused) << "no operator";
  EXPECT_TRUE(loop.adopt(kOperator, without, now_).goes_on());
  EXPECT_EQ(outside_.begins_again, "") << "it leads on";
  EXPECT_EQ(loop.doubt(), "");
  ASSERT_EQ(loop.records().size(), 1U);
  EXPECT_EQ(loop.records().begin()->second.state(), v1::JobRecord::ENDING);
}

/// Of a backup: one job that it has goes on, of another one it has a stale record, and a number of
/// its is another job's.
TEST_F(ManagerAdoption, OfAnOldStoreItKeepsWhatIsSo) {
  const v1::JobRecord runs = placed(request('a'));
  const v1::JobRecord found = placed(request('b'));
  v1::JobRecord over = found; // the number of one that runs
  over.mutable_request()->set_request_id(std::string(16, 'c'));
  v1::JobRecord placing = runs;
  placing.set_state(v1::JobRecord::PLACING);
  store_.items = {{"job/1", placing.SerializeAsString()}, {"job/2", over.SerializeAsString()}};
  Loop& loop = adopting();
  show_all(loop);
  std::map<std::uint64_t, std::string> requests;
  for (const auto& [id, record] : loop.records()) {
    EXPECT_EQ(record.state(), v1::JobRecord::PLACED);
    requests[id] = record.request().request_id();
  }
  EXPECT_EQ(requests, (std::map<std::uint64_t, std::string>{{1, std::string(16, 'a')},
                                                            {2, std::string(16, 'b')}}));
  EXPECT_TRUE(outside_.removed.empty());
}

TEST_F(ManagerAdoption, AJobsTokenIsGoodAgain) {
  v1::GrantAllocationRequest grant = granted_hosts();
  const std::uint64_t allocation = before_.grant(kScheduler, grant, now_);
  const v1::HoldJobRequest wish = request_by_token(allocation);
  placed(wish, {});
  Loop& loop = adopting();
  show_all(loop);
  loop.on_hold(5, {}, wish, now_);
  EXPECT_FALSE(outside_.ended) << outside_.ended->words;
  EXPECT_EQ(loop.records().size(), 1U);
  v1::HoldJobRequest forged = wish;
  forged.set_token(std::string(32, 'u'));
  loop.on_hold(6, {}, forged, now_);
  ASSERT_TRUE(outside_.ended);
  EXPECT_EQ(outside_.ended->code, Code::not_allowed);
  EXPECT_EQ(loop.end_allocation(kScheduler, grant.name(), now_).size(), 1U);
}

/// Nobody has said that the store is another one.
TEST_F(ManagerAdoption, AStoreThatNeverGaveAJobsNumberWaitsForAPerson) {
  placed(request());
  after_ = std::make_unique<Loop>(site_, store_, outside_, Loop::Identity{"mgr2", {2, 1}});
  after_->begin(now_);
  show(*after_, at("leaf0"));
  EXPECT_EQ(after_->doubt(),
            "leaf0 has ring 2147483648 of job 1, a number that the store has not given yet: it is "
            "an old store, or a new one; no orders are given until `weirctl fabric claim`, or "
            "`adopt`");
  EXPECT_TRUE(outside_.removed.empty());
  for (const char* const name : {"leaf1", "spine0", "spine1"}) {
    after_->on_claimed(at(name), {Code::no_answer, "no answer"}, {}, now_);
  }
  const v1::ClaimResponse claimed = after_->adopt(kOperator, {}, now_);
  EXPECT_FALSE(claimed.goes_on());
  EXPECT_THAT(claimed.unheard(), UnorderedElementsAre("leaf1", "spine0", "spine1"));
  EXPECT_TRUE(store_.fabric.adopts());
  EXPECT_NE(outside_.begins_again, "");
}

} // namespace
} // namespace weir::jobs::manager_adoption_test
