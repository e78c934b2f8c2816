// SPDX-License-Identifier: BSD-3-Clause

/// The switch's side of a fabric's manager: who may order rings, and what becomes of orders that
/// come late.

#include "rpc/fabric_rings.hpp"
#include "support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <gmock/gmock.h>
#include <map>
#include <string>

namespace weir::rpc::fabric_rings_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

/// A switch that has room for some rings.
class Rack : public Backend {
 public:
  explicit Rack(const std::filesystem::path& state, const std::string& fabric = "lab")
      : config_(config::parse_config(
            fmt::format("ports: [{{name: p0, device: a}}]\ncontrol: {{listen: ['unix:/x'], "
                        "fabric: {}}}\nspare: {{rings: 4, members: 8, frames: 64}}\n"
                        "state_directory: {}\n",
                        fabric, state.string()),
            "f")) {}

  std::map<ring::RingBirth, std::uint32_t> rings_here;
  std::uint32_t refused = 0; // an id

  std::vector<std::uint32_t> ids() const {
    std::vector<std::uint32_t> ids;
    for (const auto& [birth, id] : rings_here) {
      ids.push_back(id);
    }
    return ids;
  }

  command::Answer execute(const command::Words&, const Principal&) override {
    return std::string();
  }

  report::Report ask(const command::Words&, const Principal&) override { return {}; }

  command::Words completions(std::string_view, const Principal&) override { return {}; }

  std::vector<ListedRing> rings() override { return {}; }

  void add_ring(const ring::RingSpec&, const Principal&) override {}

  ring::RingBirth hold_ring(ring::RingSpec& ring, const Principal&) override {
    if (ring.id == refused) {
      throw control::NoRoomForRing("no room");
    }
    rings_here[++last_] = ring.id;
    return last_;
  }

  void remove_ring(std::uint32_t id, const Principal&) override {
    std::erase_if(rings_here, [&](const auto& ring) { return ring.second == id; });
  }

  void drain_ring(std::uint32_t, std::chrono::seconds, const Principal&) override {}

  void remove_orphan(ring::RingBirth birth) override { rings_here.erase(birth); }

  bool has_ring(ring::RingBirth birth) override { return rings_here.contains(birth); }

  std::shared_ptr<const config::Config> config() override {
    return std::make_shared<const config::Config>(config_);
  }

  void check_lcores() override {}

  TendedSwitch tended() override {
    TendedSwitch seen{.rings = {}, .ports = {{"p0", true}}, .room = {4, 8, 64}};
    for (const auto& [birth, id] : rings_here) {
      seen.rings.push_back(
          {.id = id, .birth = birth, .silent_ms = 5, .waits_for = {1}, .room = {1, 2, 16}});
    }
    return seen;
  }

 private:
  const config::Config config_;
  ring::RingBirth last_ = 0;
};

class FabricRingsTest : public testing::Test {
 protected:
  v1::ClaimFabricResponse claim(std::uint64_t number, const std::string& fabric = "lab",
                                const std::string& manager = "mgr") {
    v1::ClaimFabricRequest request;
    request.set_fabric(fabric);
    request.set_manager(manager);
    request.mutable_term()->set_epoch(1);
    request.mutable_term()->set_number(number);
    v1::ClaimFabricResponse response;
    rings_.claim(request, response);
    boot_ = response.boot();
    return response;
  }

  void address(v1::FabricOrder& order, std::uint64_t term, std::uint64_t number) const {
    order.set_fabric("lab");
    order.mutable_term()->set_epoch(1);
    order.mutable_term()->set_number(term);
    order.set_boot(boot_);
    order.set_number(number);
  }

  v1::ApplyRingsRequest apply(std::uint64_t term, std::uint64_t number,
                              const std::vector<std::uint32_t>& ids,
                              const std::string& address_of_last = "10.0.0.2") const {
    v1::ApplyRingsRequest request;
    address(*request.mutable_order(), term, number);
    for (const std::uint32_t id : ids) {
      v1::LabelledRing& ring = *request.add_rings();
      ring.mutable_ring()->set_id(id);
      ring.mutable_ring()->set_window(1);
      ring.mutable_ring()->set_max_message_bytes(1024);
      ring.mutable_ring()->add_members()->set_ip("10.0.0.1");
      ring.mutable_ring()->add_members()->set_ip(address_of_last);
      ring.mutable_label()->set_job(7);
    }
    return request;
  }

  v1::RemoveRingsRequest remove(std::uint64_t term, std::uint64_t number,
                                const std::vector<std::uint32_t>& ids) const {
    v1::RemoveRingsRequest request;
    address(*request.mutable_order(), term, number);
    request.mutable_ids()->Add(ids.begin(), ids.end());
    return request;
  }

  const test::TemporaryFolder folder_{"weir-fabric"};
  Rack rack_{folder_.path()};
  FabricRings rings_{rack_};
  std::string boot_;
};

TEST_F(FabricRingsTest, ALowerTermIsOver) {
  claim(5);
  claim(5); // once more
  rings_.apply(apply(5, 1, {2147483648}));
  claim(6);
  EXPECT_THAT([&] { rings_.apply(apply(5, 2, {2147483649})); },
              ThrowsMessage<TermOver>("term 1.5 is over: 1.6 (mgr) has claimed this switch"));
  EXPECT_THAT([&] { rings_.remove(remove(5, 3, {2147483648})); },
              ThrowsMessage<TermOver>(HasSubstr("1.5")));
  EXPECT_THAT([&] { claim(5); }, ThrowsMessage<TermOver>(HasSubstr("1.5")));
  EXPECT_THAT(rack_.ids(), ElementsAre(2147483648));
}

/// Two managers without a store in common may count up to the same.
TEST_F(FabricRingsTest, AnothersTermIsOver) {
  claim(5);
  rings_.apply(apply(5, 1, {2147483648}));
  EXPECT_THAT([&] { claim(5, "lab", "other"); },
              ThrowsMessage<TermOver>("term 1.5 is over: 1.5 (mgr) has claimed this switch"));
  rings_.apply(apply(5, 2, {2147483649}));
  claim(6, "lab", "other");
}

/// Who wants to claim the switch by hand should know whether he takes it from a manager that lives.
TEST_F(FabricRingsTest, ARefusedClaimIsToldWhoHasTheTermAndSinceWhenHeIsSilent) {
  const auto told = [](FabricRings& rings) {
    v1::ClaimFabricRequest request;
    request.set_fabric("lab");
    request.set_manager("old");
    v1::ClaimFabricResponse answer;
    try {
      rings.claim(request, answer);
    } catch (const TermOver& over) {
      answer.ParseFromString(over.details());
    }
    return answer;
  };
  claim(9);
  const v1::ClaimFabricResponse now = told(rings_);
  EXPECT_EQ(now.highest().epoch(), 1U);
  EXPECT_EQ(now.highest().number(), 9U);
  EXPECT_EQ(now.holder(), "mgr");
  ASSERT_TRUE(now.has_holder_heard_ms());
  EXPECT_LT(now.holder_heard_ms(), 60'000U);
  FabricRings restarted(rack_);
  EXPECT_EQ(told(restarted).holder(), "mgr");
  EXPECT_FALSE(told(restarted).has_holder_heard_ms());
  v1::WatchSwitchRequest watch;
  watch.set_fabric("lab");
  watch.mutable_term()->set_epoch(1);
  watch.mutable_term()->set_number(9);
  v1::SwitchSeen seen;
  restarted.look(watch, FabricRings::Labels::told, seen);
  EXPECT_TRUE(told(restarted).has_holder_heard_ms()) << "he watches";
}

TEST_F(FabricRingsTest, ARestartedSwitchKnowsTheTerm) {
  claim(9);
  FabricRings restarted(rack_);
  v1::ClaimFabricRequest request;
  request.set_fabric("lab");
  request.set_manager("old");
  request.mutable_term()->set_epoch(1);
  request.mutable_term()->set_number(8);
  v1::ClaimFabricResponse response;
  EXPECT_THROW(restarted.claim(request, response), TermOver);
  request.mutable_term()->set_number(9);
  request.set_manager("mgr");
  restarted.claim(request, response);
  EXPECT_NE(response.boot(), boot_) << "another boot";
}

TEST_F(FabricRingsTest, AnotherFabricsManagerIsRefused) {
  EXPECT_THAT([&] { claim(1, "other"); },
              ThrowsMessage<WrongFabric>(
                  "fabric: found 'other'; allowed: 'lab', to which this switch belongs"));
  EXPECT_THROW(rings_.apply(apply(1, 1, {2147483648})), TermOver) << "nobody has claimed it";
  EXPECT_THAT(rack_.ids(), IsEmpty());
}

TEST_F(FabricRingsTest, AnOrderThatWasOvertakenIsRefused) {
  claim(1);
  rings_.remove(remove(1, 2, {2147483648}));
  EXPECT_THAT(
      [&] { rings_.apply(apply(1, 1, {2147483648})); },
      ThrowsMessage<OrderOvertaken>("number: found 1; allowed: more than 2, which has come"));
  EXPECT_THROW(rings_.apply(apply(1, 2, {2147483648})), OrderOvertaken);
  const std::string boot = std::exchange(boot_, "another");
  EXPECT_THROW(rings_.apply(apply(1, 3, {2147483648})), OrderOvertaken);
  boot_ = boot;
  rings_.apply(apply(1, 3, {2147483648}));
  EXPECT_THAT(rack_.ids(), ElementsAre(2147483648));
}

TEST_F(FabricRingsTest, AllRingsOfAnOrderAreMadeOrNone) {
  claim(1);
  rack_.refused = 2147483650;
  EXPECT_THROW(rings_.apply(apply(1, 1, {2147483648, 2147483649, 2147483650})),
               control::NoRoomForRing);
  EXPECT_THAT(rack_.ids(), IsEmpty());
}

TEST_F(FabricRingsTest, TheSameAgainIsMadeAndAnotherWithItsIdIsNot) {
  claim(1);
  rings_.apply(apply(1, 1, {2147483648}));
  rings_.apply(apply(1, 2, {2147483648}));
  EXPECT_THAT(rack_.ids(), ElementsAre(2147483648));
  EXPECT_THROW(rings_.apply(apply(1, 3, {2147483648}, "10.0.0.3")), RingExists);
  v1::ApplyRingsRequest of_a_newer_manager = apply(1, 4, {2147483648});
  of_a_newer_manager.mutable_rings(0)->mutable_label()->set_owner("red");
  rings_.apply(of_a_newer_manager);
  v1::ApplyRingsRequest of_another_job = apply(1, 5, {2147483648});
  of_another_job.mutable_rings(0)->mutable_label()->set_job(8);
  EXPECT_THROW(rings_.apply(of_another_job), RingExists);
  EXPECT_THAT(rack_.ids(), ElementsAre(2147483648));
}

TEST_F(FabricRingsTest, WithdrawsOnlyItsOwn) {
  claim(1);
  ring::RingSpec foreign{.id = 5, .members = {}};
  rack_.hold_ring(foreign, {});
  rings_.apply(apply(1, 1, {2147483648}));
  rings_.remove(remove(1, 2, {5, 2147483648, 99}));
  EXPECT_THAT(rack_.ids(), ElementsAre(5));
}

TEST_F(FabricRingsTest, TellsWhatThereIsBehindItsLastOrder) {
  claim(1);
  ring::RingSpec foreign{.id = 5, .members = {}};
  rack_.hold_ring(foreign, {});
  rings_.apply(apply(1, 4, {2147483648}));
  v1::WatchSwitchRequest request;
  request.set_fabric("lab");
  request.mutable_term()->set_epoch(1);
  request.mutable_term()->set_number(1);
  v1::SwitchSeen seen;
  rings_.look(request, FabricRings::Labels::told, seen);
  EXPECT_EQ(seen.boot(), boot_);
  EXPECT_EQ(seen.last_order(), 4U);
  ASSERT_EQ(seen.rings_size(), 2);
  EXPECT_FALSE(seen.rings(0).is_managed());
  EXPECT_FALSE(seen.rings(0).has_label());
  EXPECT_TRUE(seen.rings(1).is_managed());
  EXPECT_EQ(seen.rings(1).label().job(), 7U);
  EXPECT_FALSE(seen.rings(1).has_ring()) << "nobody has asked for it";
  EXPECT_THAT(seen.rings(1).waits_for(), ElementsAre(1));
  EXPECT_EQ(seen.others().members(), 2U) << "of the ring that no manager made";
  EXPECT_EQ(seen.room().frames(), 64U);
  EXPECT_TRUE(seen.ports(0).is_down());
  request.set_with_rings(true);
  v1::ApplyRingsRequest wanted = apply(1, 4, {2147483648});
  wanted.mutable_rings(0)->mutable_ring()->clear_nonce();
  seen.Clear();
  rings_.look(request, FabricRings::Labels::told, seen);
  EXPECT_FALSE(seen.rings(0).has_ring());
  EXPECT_EQ(seen.rings(1).ring().DebugString(), wanted.rings(0).ring().DebugString());
  rack_.remove_ring(2147483648, {}); // by hand
  seen.Clear();
  rings_.look(request, FabricRings::Labels::left_out, seen);
  EXPECT_EQ(seen.rings_size(), 1);
}

} // namespace
} // namespace weir::rpc::fabric_rings_test
