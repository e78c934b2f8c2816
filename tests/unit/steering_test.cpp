// SPDX-License-Identifier: BSD-3-Clause

/// Which frames go to which receive queue, and whether rules come and go with their rings. A table
/// in memory stands for the NIC.

#include "control/steering.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <gmock/gmock.h>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace weir::control::steering_test {
namespace {

using testing::ElementsAre;

wire::IpAddress address(std::uint8_t last) {
  const std::uint8_t bytes[]{10, 0, 0, last};
  return wire::IpAddress::from_v4(bytes);
}

struct At {
  std::uint8_t address;
  std::optional<std::uint16_t> port;
};

ring::RingSpec ring(std::uint32_t id, const std::vector<At>& members) {
  ring::RingSpec ring;
  ring.id = id;
  for (const At& member : members) {
    ring.members.push_back({address(member.address), member.port});
  }
  return ring;
}

const std::vector<config::Role> kAll{config::Role::rx, config::Role::worker, config::Role::tx};

/// Two lcores that do all; two ports with a queue for each of them. So lcore i polls queue i of
/// both, and the rings' groups are dealt out in turn.
config::Config two_lcores() {
  config::Config config;
  config.ports.resize(2);
  for (config::PortConfig& port : config.ports) {
    port.rx_queues = 2;
  }
  config.lcores = {{.id = 0, .roles = kAll}, {.id = 1, .roles = kAll}};
  return config;
}

std::string text_of(const SteeringRule& rule) {
  return fmt::format("{}>{}:{}", rule.source.bytes.back(), rule.destination.bytes.back(),
                     rule.queue);
}

/// "1>2:0": from 10.0.0.1 to 10.0.0.2 by queue 0. In order.
std::set<std::string> planned(const config::Config& config,
                              const std::vector<ring::RingSpec>& specs, std::uint16_t port) {
  const ring::RingSet rings(specs);
  std::set<std::string> texts;
  for (const SteeringRule& rule : plan_steering(rings, place(config, rings), port).rules) {
    EXPECT_TRUE(texts.insert(text_of(rule)).second) << text_of(rule) << " is there twice";
  }
  return texts;
}

TEST(SteeringPlan, BringsBothDirectionsToTheWorkersQueue) {
  const std::vector<ring::RingSpec> rings{ring(1, {{1, {}}, {2, {}}, {3, {}}}),
                                          ring(2, {{11, {}}, {12, {}}})};
  for (const std::uint16_t port : {0, 1}) {
    EXPECT_THAT(
        planned(two_lcores(), rings, port),
        ElementsAre("11>12:1", "12>11:1", "1>2:0", "1>3:0", "2>1:0", "2>3:0", "3>1:0", "3>2:0"));
  }
}

TEST(SteeringPlan, LeavesOutWhoseSourceIsBehindAnotherPort) {
  const std::vector<ring::RingSpec> rings{ring(1, {{1, 0}, {2, 1}, {3, 1}})};
  EXPECT_THAT(planned(two_lcores(), rings, 0), ElementsAre("1>2:0", "1>3:0"));
  EXPECT_THAT(planned(two_lcores(), rings, 1), ElementsAre("2>1:0", "2>3:0", "3>1:0", "3>2:0"));
}

TEST(SteeringPlan, HasOneRuleForRingsThatShareNeighbours) {
  EXPECT_THAT(planned(two_lcores(), {ring(1, {{1, {}}, {2, {}}}), ring(2, {{1, {}}, {2, {}}})}, 0),
              ElementsAre("1>2:0", "2>1:0"));
}

TEST(SteeringPlan, CountsWhoseWorkerPollsNoQueueOfThePort) {
  config::Config config = two_lcores();
  config.lcores = {{.id = 0, .roles = {config::Role::rx, config::Role::tx}},
                   {.id = 1, .roles = {config::Role::worker}}};
  const ring::RingSet rings({ring(1, {{1, 0}, {2, 1}, {3, 1}})});
  const SteeringPlan plan = plan_steering(rings, place(config, rings), 1);
  EXPECT_THAT(plan.rules, ElementsAre());
  EXPECT_EQ(plan.without_queue, 4);
}

TEST(SteeringPlan, ForgetsWithdrawnRings) {
  const ring::RingSet both({ring(1, {{1, {}}, {2, {}}}), ring(2, {{11, {}}, {12, {}}})});
  const Placement placement = place(two_lcores(), both);
  const SteeringPlan plan = plan_steering(both.without(0), placement, 0);
  ASSERT_EQ(plan.rules.size(), 2);
  EXPECT_EQ(text_of(plan.rules[0]), "11>12:1");
  EXPECT_EQ(text_of(plan.rules[1]), "12>11:1");
}

/// A NIC that keeps its rules in memory.
struct Device {
  std::vector<std::string> steps; // "+1>2:0" taken, "!1>2:0" refused, "-1>2:0" removed
  std::set<std::string> rules;
  std::size_t room = 100;
};

class RuleInMemory : public FlowRule {
 public:
  RuleInMemory(Device& device, std::string text) : device_(device), text_(std::move(text)) {}

  ~RuleInMemory() override {
    device_.steps.push_back("-" + text_);
    device_.rules.erase(text_);
  }

 private:
  Device& device_;
  std::string text_;
};

class TableInMemory : public FlowTable {
 public:
  explicit TableInMemory(Device& device) : device_(device) {}

  std::unique_ptr<FlowRule> create(const SteeringRule& rule) override {
    const std::string text = text_of(rule);
    if (device_.rules.size() == device_.room) {
      device_.steps.push_back("!" + text);
      throw FlowRefused("table is full");
    }
    device_.steps.push_back("+" + text);
    device_.rules.insert(text);
    return std::make_unique<RuleInMemory>(device_, text);
  }

 private:
  Device& device_;
};

SteeringPlan plan(const std::vector<SteeringRule>& rules, std::size_t without_queue = 0) {
  return {.rules = rules, .without_queue = without_queue};
}

const SteeringRule kThere{address(1), address(2), 3};
const SteeringRule kBack{address(2), address(1), 3};
const SteeringRule kOther{address(7), address(8), 1};

TEST(Steering, InstallsWhatIsMissingAndRemovesWhatIsNoLongerWanted) {
  Device device;
  Steering steering(std::make_unique<TableInMemory>(device));
  steering.install(plan({kThere, kBack}));
  EXPECT_THAT(device.steps, ElementsAre("+1>2:3", "+2>1:3"));
  steering.install(plan({kThere, kBack, kOther}));
  EXPECT_THAT(device.rules, ElementsAre("1>2:3", "2>1:3", "7>8:1"));
  EXPECT_EQ(device.steps.size(), 3) << "a rule that there is was touched";
  steering.keep_only(plan({kOther}));
  EXPECT_THAT(device.rules, ElementsAre("7>8:1"));
  EXPECT_EQ(steering.state().steered, 1);
}

/// So that a member that moves to another port is steered at both meanwhile.
TEST(Steering, InstallingRemovesNothing) {
  Device device;
  Steering steering(std::make_unique<TableInMemory>(device));
  steering.install(plan({kThere}));
  steering.install(plan({kOther}));
  EXPECT_THAT(device.rules, ElementsAre("1>2:3", "7>8:1"));
}

TEST(Steering, ReplacesARuleForAnotherQueue) {
  Device device;
  Steering steering(std::make_unique<TableInMemory>(device));
  steering.install(plan({kThere}));
  steering.install(plan({{kThere.source, kThere.destination, 5}}));
  EXPECT_THAT(device.steps, ElementsAre("+1>2:3", "-1>2:3", "+1>2:5"));
}

TEST(Steering, LeavesNoRuleBehind) {
  Device device;
  {
    Steering steering(std::make_unique<TableInMemory>(device));
    steering.install(plan({kThere, kOther}));
  }
  EXPECT_THAT(device.rules, ElementsAre());
}

/// A later rule would change a running connection's queue.
TEST(Steering, TriesARefusedRuleAgainOnlyForANewRing) {
  Device device{.room = 1};
  Steering steering(std::make_unique<TableInMemory>(device));
  steering.install(plan({kThere, kOther}));
  const SteeringState state = steering.state();
  EXPECT_EQ(state.steered, 1);
  EXPECT_EQ(state.refused, 1);
  EXPECT_EQ(state.reason, "table is full");
  device.room = 100;
  steering.install(plan({kThere, kOther}));
  EXPECT_THAT(device.steps, ElementsAre("+1>2:3", "!7>8:1"));
  steering.keep_only(plan({kThere}));
  EXPECT_EQ(steering.state().reason, "");
  steering.install(plan({kThere, kOther}));
  EXPECT_THAT(device.rules, ElementsAre("1>2:3", "7>8:1"));
}

/// A ring that is not made in the end leaves no rule, and is tried again.
TEST(Steering, ForgetsARefusedRuleThatNoRingWants) {
  Device device{.room = 0};
  Steering steering(std::make_unique<TableInMemory>(device));
  steering.install(plan({kThere}));
  steering.keep_only(plan({}));
  device.room = 1;
  steering.install(plan({kThere}));
  EXPECT_THAT(device.steps, ElementsAre("!1>2:3", "+1>2:3"));
}

TEST(Steering, HasTheSameTroubleWithOtherNumbers) {
  const auto kinds = [](std::size_t refused, std::size_t without_queue) {
    return kinds_of_trouble({.steered = 1,
                             .refused = refused,
                             .without_queue = without_queue,
                             .reason = refused == 0 ? "" : "no room"});
  };
  EXPECT_EQ(kinds(0, 0), "");
  EXPECT_EQ(kinds(2, 0), kinds(4, 0));
  EXPECT_NE(kinds(2, 0), kinds(2, 1));
  EXPECT_EQ(kinds(0, 1), kinds(0, 2));
  EXPECT_NE(kinds(0, 1), "");
}

TEST(Steering, SaysInWordsWhatIsNotSteered) {
  EXPECT_EQ(why_not_all({.steered = 4, .refused = 0, .without_queue = 0, .reason = ""}, "p0", "x"),
            "");
  EXPECT_EQ(why_not_all({.steered = 4, .refused = 2, .without_queue = 0, .reason = "no room"}, "p0",
                        "net_x"),
            "port p0: 4 of 6 pairs of ring neighbours are steered: net_x refuses 2 (no room); the "
            "others' frames come as without `rx_steering: flow`");
  EXPECT_EQ(why_not_all({.steered = 0, .refused = 2, .without_queue = 6, .reason = "no room"}, "p0",
                        "net_x"),
            "port p0: 0 of 8 pairs of ring neighbours are steered: net_x refuses 2 (no room), and "
            "the workers of 6 poll no receive queue of this port (allowed: workers on the port's "
            "NUMA node, with the role rx, and as many rx_queues); the others' frames come as "
            "without `rx_steering: flow`");
}

} // namespace
} // namespace weir::control::steering_test
