// SPDX-License-Identifier: BSD-3-Clause

/// What a reload would do with the rings, and whether they would fit: nothing here runs.

#include "control/memory.hpp"
#include "control/placement.hpp"
#include "control/reload_plan.hpp"
#include "control/ring_admission.hpp"
#include "control/ring_budget.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace weir::control::reload_test {
namespace {

using config::Config;
using config::Effect;

constexpr std::size_t kFrameBytes = 2048;
constexpr std::size_t kMuchMemory = std::size_t{1} << 40;

/// Ports p0 and p1, and lcores of which so many work.
std::string base(unsigned workers = 1) {
  std::string text = "ports: [{ name: p0, device: d0 }, { name: p1, device: d1 }]\n"
                     "lcores:\n  - { id: 0, roles: [control, rx, tx] }\n";
  for (unsigned id = 1; id <= workers; ++id) {
    text += fmt::format("  - {{ id: {}, roles: [worker] }}\n", id);
  }
  return text;
}

/// A ring of two hosts of its own, 10.0.<network>.1 and .2.
std::string ring(std::uint32_t id, std::uint32_t network, std::string_view more = "window: 1") {
  return fmt::format("  - {{ id: {}, max_message_bytes: 1024, members: [{{ ip: 10.0.{}.1 }}, "
                     "{{ ip: 10.0.{}.2 }}], {} }}\n",
                     id, network, network, more);
}

Config config_of(const std::string& rings) {
  return config::parse_config(fmt::format("{}rings:\n{}", base(), rings), "f.yaml");
}

ReloadPlan planned(const std::string& in_force, const std::string& wanted,
                   const std::string& at_run_time = "") {
  const Config config = config_of(wanted);
  return plan_reload(config_of(in_force), {config, {}, config.rings},
                     ring::RingSet(config_of(in_force + at_run_time).rings));
}

std::string ids(const std::vector<ring::RingSpec>& rings) {
  std::string text;
  for (const ring::RingSpec& ring : rings) {
    text += fmt::format(" {}", ring.id);
  }
  return text;
}

/// "withdrawn 1, changed, added 2"
std::string steps_of(const ReloadPlan& plan) {
  return fmt::format("withdrawn{}, changed{}, added{}", ids(plan.withdrawn), ids(plan.changed),
                     ids(plan.added));
}

TEST(ReloadPlan, SaysWhichRingsGoChangeAndCome) {
  const std::string one = ring(1, 1);
  EXPECT_EQ(steps_of(planned(one, one)), "withdrawn, changed, added");
  EXPECT_EQ(steps_of(planned(one, one + ring(2, 2))), "withdrawn, changed, added 2");
  EXPECT_EQ(steps_of(planned(one + ring(2, 2), one)), "withdrawn 2, changed, added");
  EXPECT_EQ(steps_of(planned(one, ring(1, 1, "window: 2"))), "withdrawn 1, changed, added 1");
  EXPECT_EQ(steps_of(planned(one, ring(1, 9))), "withdrawn 1, changed, added 1");
  EXPECT_EQ(steps_of(planned(one, ring(1, 1, "window: 1, patience: 5"))),
            "withdrawn, changed 1, added");
  EXPECT_EQ(steps_of(planned(one, ring(1, 1, "window: 2, patience: 5"))),
            "withdrawn 1, changed, added 1")
      << "made anew, it needs no change";
  EXPECT_EQ(steps_of(planned(one, ring(1, 9, "window: 1, patience: 5"))),
            "withdrawn 1, changed, added 1");
}

/// Where other switches are, only names change in place.
TEST(ReloadPlan, AnotherPlaceInATreeMakesARingAnew) {
  const auto leaf = [](std::string_view parent, std::string_view child) {
    return ring(1, 1,
                fmt::format("window: 1, parent: {{ {} }}, children: [{{ {} }}]", parent, child));
  };
  const std::string running = leaf("switch: s, port: p0", "rank: 0");
  EXPECT_EQ(steps_of(planned(running, running)), "withdrawn, changed, added");
  EXPECT_EQ(steps_of(planned(running, leaf("switch: t, port: p0", "rank: 0"))),
            "withdrawn, changed 1, added");
  EXPECT_EQ(steps_of(planned(running, leaf("switch: s, port: p0", "rank: 0, port: p1"))),
            "withdrawn, changed 1, added");
  EXPECT_EQ(steps_of(planned(running, leaf("switch: s, port: p1", "rank: 0"))),
            "withdrawn 1, changed, added 1");
  EXPECT_EQ(steps_of(planned(running, leaf("switch: s, port: p0", "rank: 1"))),
            "withdrawn 1, changed, added 1");
  EXPECT_EQ(steps_of(planned(running, ring(1, 1))), "withdrawn 1, changed, added 1");
}

/// Only that is worth a stop of the lcores.
TEST(ReloadPlan, TellsWhetherSomethingChangesThatStays) {
  EXPECT_FALSE(planned(ring(1, 1), ring(1, 1)).changes_in_place());
  EXPECT_TRUE(planned(ring(1, 1), ring(1, 1, "window: 1, patience: 5")).changes_in_place());
  EXPECT_FALSE(planned(ring(1, 1), ring(1, 1, "window: 2, patience: 5")).changes_in_place());
  EXPECT_FALSE(planned(ring(1, 1), ring(2, 2)).changes_in_place());
  Config aged = config_of(ring(1, 1));
  aged.l2.aging_s = 5;
  EXPECT_TRUE(plan_reload(config_of(ring(1, 1)), {aged, {}, aged.rings}, ring::RingSet(aged.rings))
                  .changes_in_place());
  aged = config_of(ring(1, 1));
  aged.l2.entries = 16; // waits for a restart
  EXPECT_FALSE(plan_reload(config_of(ring(1, 1)), {aged, {}, aged.rings}, ring::RingSet(aged.rings))
                   .changes_in_place());
}

TEST(ReloadPlan, RingsMadeAtRunTimeStay) {
  EXPECT_EQ(steps_of(planned(ring(1, 1), ring(1, 1), ring(7, 7))), "withdrawn, changed, added");
  const ReloadPlan kept = planned(ring(1, 1), ring(1, 1) + ring(7, 7), ring(7, 7));
  EXPECT_EQ(steps_of(kept), "withdrawn, changed 7, added");
  ASSERT_EQ(kept.changes.size(), 1u);
  EXPECT_EQ(kept.changes[0].effect, Effect::ring_kept);
  try {
    planned(ring(1, 1), ring(1, 1) + ring(7, 8), ring(7, 7));
    ADD_FAILURE() << "another ring with its id";
  } catch (const RingRefused& error) {
    EXPECT_STREQ(error.what(),
                 "ring 7: a ring with this id was made while the switch runs, and the file has "
                 "another one (rings[7].members[0].ip: found 10.0.8.1, running: 10.0.7.1); "
                 "allowed: withdraw ring 7, or another id in the file");
  }
}

// ---- The file. ----

class ReloadFile : public testing::Test {
 protected:
  ~ReloadFile() override { std::filesystem::remove(file_); }

  void write(std::string_view text) const { std::ofstream(file_) << text; }

  Config running() const {
    Config config = config::parse_config(base(), file_.string());
    config.file = file_;
    return config;
  }

  std::string error() const {
    try {
      read_wanted(running(), PortBudget(running()));
      return "no error";
    } catch (const config::ConfigError& error) {
      return error.what();
    }
  }

  std::filesystem::path file_ =
      std::filesystem::temp_directory_path() / fmt::format("weir_reload_{}.yaml", getpid());
};

TEST_F(ReloadFile, PortsOfMembersAreThoseOfTheRunningSwitch) {
  write("ports: [{ name: p1, device: d1 }, { name: p0, device: d0 }]\n"
        "rings:\n  - { id: 1, window: 1, max_message_bytes: 40, members: [{ ip: 10.0.0.1, port: p0 "
        "}, { ip: 10.0.0.2, port: p1 }] }\n");
  const WantedConfig wanted = read_wanted(running(), PortBudget(running()));
  EXPECT_EQ(wanted.rings[0].members[0].port, 0);
  EXPECT_EQ(wanted.rings[0].members[1].port, 1);
  EXPECT_EQ(wanted.config.rings[0].members[0].port, 1) << "the file's own number";
}

/// The file would allow it after a restart.
TEST_F(ReloadFile, ARingMustSuitThePortsThatAreThere) {
  const std::string big = "ports: [{ name: p0, device: d0, mtu: 9000 }]\nrings:\n";
  write(big + ring(1, 1, "window: 1, mtu: 4096"));
  EXPECT_NE(error().find("over port p0's mtu of 1500"), std::string::npos) << error();
  EXPECT_NE(error().find("until it is started again, the switch has its ports as"),
            std::string::npos);
  write("ports: [{ name: p9, device: d0 }]\nrings:\n  - { id: 1, window: 1, max_message_bytes: 40, "
        "members: [{ ip: 10.0.0.1, port: p9 }, { ip: 10.0.0.2 }] }\n");
  EXPECT_NE(error().find("found \"p9\"; allowed: p0"), std::string::npos) << error();
}

TEST_F(ReloadFile, OneThatCannotBeReadIsAnError) {
  EXPECT_NE(error().find("found no such file"), std::string::npos) << error();
  write("ports: 5\n");
  EXPECT_EQ(error().find("until it is started"), std::string::npos) << error();
  EXPECT_THROW((void)read_wanted(config::parse_config(base(), "text"), PortBudget(running())),
               config::ConfigError);
}

// ---- Whether it fits. ----

/// A switch that was started with these rings and lacks nothing but what a test takes.
struct Desk {
  explicit Desk(const std::string& rings, const std::string& spare, unsigned workers = 1)
      : config(config::parse_config(
            fmt::format("{}{}state_directory: /x\nrings:\n{}", base(workers), spare, rings),
            "f.yaml")),
        set(config.rings), placement(place(config, set)),
        budget(config.spare, set, plan_memory(config, set, placement)),
        tenants(config.tenants, kFrameBytes, set) {
    free.places.assign(placement.lcores.size(), 100);
    free.memory = kMuchMemory;
  }

  RingAdmission admission() const { return {set, placement, {budget, tenants}, free}; }

  ring::RingSpec spec(const std::string& text) const { return config_of(text).rings[0]; }

  /// What is said to rings that come when others have gone.
  std::string answer(const std::vector<std::uint32_t>& gone,
                     const std::vector<std::string>& come) const {
    RingAdmission rings = admission();
    for (const std::uint32_t id : gone) {
      rings.withdraw(*set.ring_with_id(id));
    }
    try {
      for (const std::string& text : come) {
        rings.add(spec(text));
      }
      return "they fit";
    } catch (const RingRefused& error) {
      return error.what();
    }
  }

  Config config;
  ring::RingSet set;
  Placement placement;
  RingBudget budget;
  Tenants tenants;
  RingAdmission::Free free;
};

constexpr std::string_view kNoSpare = "spare: { rings: 0, members: 0, frames: 0 }\n";

TEST(RingAdmission, AWithdrawnRingGivesRoom) {
  const Desk desk(ring(1, 1) + ring(2, 2), std::string(kNoSpare));
  EXPECT_NE(desk.answer({}, {ring(3, 3)}).find("there are 2 rings, as many as"), std::string::npos);
  EXPECT_EQ(desk.answer({1}, {ring(3, 3)}), "they fit");
  EXPECT_EQ(desk.answer({1}, {ring(1, 3)}), "they fit") << "its id is free too";
  EXPECT_EQ(desk.answer({1, 2}, {ring(3, 3), ring(4, 4)}), "they fit");
  EXPECT_NE(desk.answer({1}, {ring(3, 3), ring(4, 4)}).find("ring 4: there are 2 rings"),
            std::string::npos)
      << "the first one has taken it";
  EXPECT_NE(desk.answer({1}, {ring(3, 3, "window: 2")}).find("ring 3: needs "), std::string::npos)
      << "more than ring 1 had";
}

/// Also a ring that a reload would make, whose file may name more hosts than are in force.
TEST(RingAdmission, ATenantsRingHasItsOwnHosts) {
  Desk desk(ring(1, 1), "spare: { rings: 9, members: 90, frames: 9000 }\n");
  desk.tenants = Tenants({{.name = "red", .hosts = {*config::parse_block("192.0.2.0/24")}}},
                         kFrameBytes, desk.set);
  RingAdmission rings = desk.admission();
  ring::RingSpec spec = desk.spec(ring(2, 2));
  EXPECT_NO_THROW(desk.admission().add(spec));
  spec.tenant = "red";
  EXPECT_THROW(rings.add(spec), RingRefused);
}

TEST(RingAdmission, MemoryComesBackAndIsTaken) {
  Desk desk(ring(1, 1), "spare: { rings: 9, members: 90, frames: 9000 }\n");
  const std::size_t of_one = plan_memory(desk.config, desk.set, desk.placement).ring_bytes;
  desk.free.memory = of_one;
  EXPECT_EQ(desk.answer({}, {ring(2, 2)}), "they fit");
  EXPECT_NE(desk.answer({}, {ring(2, 2), ring(3, 3)}).find("0 are free"), std::string::npos);
  EXPECT_EQ(desk.answer({1}, {ring(2, 2), ring(3, 3)}), "they fit");
}

TEST(RingAdmission, PlacesForMembersComeBackAndAreTaken) {
  Desk desk(ring(1, 1), "spare: { rings: 9, members: 90, frames: 9000 }\n");
  desk.free.places.assign(desk.placement.lcores.size(), 2);
  EXPECT_EQ(desk.answer({}, {ring(2, 2)}), "they fit");
  EXPECT_NE(desk.answer({}, {ring(2, 2), ring(3, 3)}).find("lcore 1 has no places for 2 members"),
            std::string::npos);
  EXPECT_EQ(desk.answer({1}, {ring(2, 2), ring(3, 3)}), "they fit");
}

/// Not those of ranks that are other switches' children.
TEST(RingAdmission, ARingOfATreeTakesPlacesForItsChildrenAndItsParent) {
  Desk desk(ring(1, 1), "spare: { rings: 9, members: 3, frames: 9000 }\n");
  const std::string leaf = "  - { id: 2, window: 1, max_message_bytes: 1024,\n"
                           "      members: [{ ip: 10.1.0.1 }, { ip: 10.1.0.2 }, { ip: 10.1.0.3 }, "
                           "{ ip: 10.1.0.4 }],\n"
                           "      parent: { switch: s, port: p0 }, children: [CHILDREN] }\n";
  const auto with = [&leaf](const std::string& children) {
    return std::string(leaf).replace(leaf.find("CHILDREN"), 8, children);
  };
  desk.free.places.assign(desk.placement.lcores.size(), 3);
  EXPECT_EQ(desk.answer({}, {with("{ rank: 0 }, { rank: 1 }")}), "they fit");
  EXPECT_EQ(desk.answer({}, {with("{ rank: 0 }, { rank: 1 }, { rank: 2 }")}),
            "ring 2: needs 4 places for members, 3 are free; held by ring 1: 2; allowed: withdraw "
            "a ring, or configure a larger spare.members");
  desk.free.places.assign(desk.placement.lcores.size(), 2);
  EXPECT_NE(desk.answer({}, {with("{ rank: 0 }, { rank: 1 }")})
                .find("lcore 1 has no places for 3 members"),
            std::string::npos);
  EXPECT_EQ(desk.answer({}, {with("{ rank: 0 }")}), "they fit");
}

/// Rings with the same neighbours go to different lcores, whether these are there or are only to
/// come.
TEST(RingAdmission, RememberWhoWorksForWhom) {
  const Desk desk(ring(1, 1), "spare: { rings: 9, members: 90, frames: 9000 }\n", 2);
  RingAdmission rings = desk.admission();
  const std::size_t second = rings.add(desk.spec(ring(2, 2)));
  EXPECT_NE(second, desk.placement.worker_of_ring[0]);
  EXPECT_NE(rings.add(desk.spec(ring(3, 2))), second);
  EXPECT_EQ(rings.add(desk.spec(ring(4, 1))), second);
  ring::RingSpec both = desk.spec(ring(5, 1));
  both.members.push_back(desk.spec(ring(6, 2)).members[0]);
  both.members.push_back(desk.spec(ring(6, 2)).members[1]);
  EXPECT_NO_THROW(rings.add(both)) << "two lcores know its neighbours";
}

TEST(RingAdmission, AnAddressWithTwoPortsIsRefused) {
  const Desk desk(ring(1, 1), "spare: { rings: 9, members: 90, frames: 9000 }\n");
  RingAdmission rings = desk.admission();
  ring::RingSpec tied = desk.config.rings[0];
  tied.members[0].port = 0;
  rings.change(std::vector{tied});
  ring::RingSpec other = desk.spec(ring(2, 1));
  other.members[0].port = 1;
  EXPECT_THROW(rings.add(other), RingRefused);
}

} // namespace
} // namespace weir::control::reload_test
