// SPDX-License-Identifier: BSD-3-Clause

/// `lcores: auto`: machines and work to do, and who gets which CPU. A choice is written
/// "0 | 1, 2": the control lcore's CPU, and those that carry packets.

#include "control/cpu_quota.hpp"
#include "control/cpus.hpp"
#include "control/lcore_choice.hpp"
#include "control/own_lcores.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace weir::control::lcore_choice_test {
namespace {

using config::Role;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// Of cores without hardware threads, all near one another.
std::vector<Cpu> cores(unsigned count) {
  std::vector<Cpu> cpus;
  for (unsigned id = 0; id < count; ++id) {
    cpus.push_back({.id = id, .core = id});
  }
  return cpus;
}

double near(unsigned, unsigned) {
  return 60;
}

std::string written(const LcoreChoice& choice) {
  const std::vector<Role> data{Role::rx, Role::worker, Role::tx};
  std::vector<unsigned> control;
  std::vector<unsigned> carriers;
  for (const config::LcoreConfig& lcore : choice.lcores) {
    EXPECT_TRUE(lcore.roles == std::vector{Role::control} || lcore.roles == data);
    (lcore.roles == data ? carriers : control).push_back(lcore.id);
  }
  return fmt::format("{} | {}", fmt::join(control, ", "), fmt::join(carriers, ", "));
}

std::string chosen(const std::vector<Cpu>& cpus, const LcoreDemand& demand,
                   const RoundTrip& round_trip = near) {
  return written(choose_lcores(cpus, demand, round_trip));
}

TEST(LcoreChoice, HasNoMoreWorkersThanRingsPortsAndCores) {
  EXPECT_EQ(chosen(cores(2), {.rings = 8, .ports = 8}), "0 | 1");
  EXPECT_EQ(chosen(cores(8), {.rings = 0, .ports = 8}), "0 | 1") << "a plain switch";
  EXPECT_EQ(chosen(cores(8), {.rings = 1, .ports = 8}), "0 | 1") << "a second one hands over";
  EXPECT_EQ(chosen(cores(8), {.rings = 3, .ports = 8}), "0 | 1, 2, 3");
  EXPECT_EQ(chosen(cores(8), {.rings = 100, .ports = 2}), "0 | 1, 2");
  EXPECT_EQ(chosen(cores(8), {.rings = 100, .ports = 32}), "0 | 1, 2, 3, 4, 5, 6, 7");
}

TEST(LcoreChoice, OneRingNeedsNoMeasurement) {
  const RoundTrip never = [](unsigned, unsigned) -> double { throw std::logic_error("measured"); };
  EXPECT_EQ(chosen(cores(8), {.rings = 1, .ports = 8}, never), "0 | 1");
}

TEST(LcoreChoice, LeavesFarCpusOut) {
  const RoundTrip by_half = [](unsigned one, unsigned other) {
    return (one < 4) == (other < 4) ? 60.0 : 400.0;
  };
  const LcoreChoice choice = choose_lcores(cores(6), {.rings = 8, .ports = 8}, by_half);
  EXPECT_EQ(written(choice), "0 | 1, 2, 3");
  EXPECT_THAT(choice.reasons,
              ElementsAre("control on CPU 0; rx, worker and tx on each of CPUs 1, 2, 3",
                          AllOf(HasSubstr("CPU 4 is left out"), HasSubstr("takes 400 ns")),
                          HasSubstr("CPU 5 is left out")));
}

TEST(LcoreChoice, TakesOneThreadOfEachCore) {
  std::vector<Cpu> cpus; // CPU n and n + 4 are of one core
  for (unsigned id = 0; id < 8; ++id) {
    cpus.push_back({.id = id, .core = id % 4});
  }
  EXPECT_EQ(chosen(cpus, {.rings = 8, .ports = 8}), "0 | 1, 2, 3");
  EXPECT_EQ(chosen({{.id = 5, .core = 2}, {.id = 7, .core = 2}}, {.rings = 8, .ports = 8}), "5 | 7")
      << "there is one core";
}

TEST(LcoreChoice, StaysOnThePortsNode) {
  std::vector<Cpu> cpus;
  for (unsigned id = 0; id < 8; ++id) {
    cpus.push_back({.id = id, .core = id, .node = id < 4 ? 0 : 1});
  }
  EXPECT_EQ(chosen(cpus, {.rings = 8, .ports = 8, .node = 1}), "0 | 4, 5, 6, 7");
  EXPECT_EQ(chosen(cpus, {.rings = 8, .ports = 8, .node = 0}), "4 | 0, 1, 2, 3");
  EXPECT_EQ(chosen(cpus, {.rings = 2, .ports = 8, .node = 3}), "0 | 1, 2")
      << "none may be used there";
}

TEST(LcoreChoice, OneCpuDoesAllAndSleeps) {
  const LcoreChoice choice = choose_lcores(cores(1), {.rings = 4, .ports = 4}, near);
  ASSERT_EQ(choice.lcores.size(), 1u);
  EXPECT_THAT(choice.lcores[0].roles, ElementsAre(Role::control, Role::rx, Role::worker, Role::tx));
  EXPECT_EQ(choice.lcores[0].idle, config::Idle::sleep);
}

TEST(LcoreChoice, SaysHowManyCoresItLeavesFree) {
  const LcoreChoice choice = choose_lcores(cores(8), {.rings = 1, .ports = 4}, near);
  EXPECT_THAT(choice.reasons,
              ElementsAre("control on CPU 0; rx, worker and tx on CPU 1",
                          "1 ring and 4 ports keep 1 worker busy: 6 more cores are left free"));
}

TEST(LcoreChoice, SpinsNoLongerThanTheKernelGrants) {
  LcoreDemand demand{.rings = 8, .ports = 8, .quota = 3.9};
  const LcoreChoice limited = choose_lcores(cores(8), demand, near);
  EXPECT_EQ(written(limited), "0 | 1, 2");
  EXPECT_THAT(limited.reasons,
              ElementsAre(HasSubstr("on each of CPUs 1, 2"),
                          "the kernel grants 3.90 CPUs' time (cpu.max of a control "
                          "group): room for control and 2 workers"));
  demand.quota = 1.9;
  const LcoreChoice one = choose_lcores(cores(8), demand, near);
  ASSERT_EQ(one.lcores.size(), 1u);
  EXPECT_EQ(one.lcores[0].idle, config::Idle::sleep);
  EXPECT_EQ(limited.lcores[0].idle, config::Idle::sleep);
  demand.quota = 1.999;
  EXPECT_THAT(choose_lcores(cores(8), demand, near).reasons,
              ElementsAre(testing::_, HasSubstr(" 1.99 ")));
  demand.quota = 3;
  EXPECT_THAT(choose_lcores(cores(2), demand, near).reasons, ElementsAre(testing::_))
      << "it has no more CPUs";
  demand.quota = 16;
  EXPECT_EQ(chosen(cores(8), demand), "0 | 1, 2, 3, 4, 5, 6, 7");
}

/// Files as cgroups(7) has them, below a folder of the test's own.
class CpuQuota : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(root_); }

  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }

  std::optional<double> quota_of(const std::string& process) const {
    write("self", process);
    return cpu_quota(root_ / "self", root_);
  }

 private:
  const std::filesystem::path root_ =
      std::filesystem::temp_directory_path() / fmt::format("weir-cgroup-{}", getpid());
};

TEST_F(CpuQuota, IsTheLeastOfTheGroupAndThoseAbove) {
  write("pods/cpu.max", "250000 100000\n");
  write("pods/one/cpu.max", "max 100000\n");
  write("pods/one/weir/cpu.max", "800000 200000\n");
  EXPECT_EQ(quota_of("0::/pods/one/weir\n"), 2.5);
  EXPECT_EQ(quota_of("0::/pods/one\n"), 2.5);
}

TEST_F(CpuQuota, IsReadOfVersionOneToo) {
  write("cpu,cpuacct/box/cpu.cfs_quota_us", "150000\n");
  write("cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
  write("cpuset/box/cpu.cfs_quota_us", "1\n");
  write("cpuset/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota_of("5:cpuset:/box\n4:cpu,cpuacct:/box\n0::/\n"), 1.5);
}

TEST_F(CpuQuota, IsReadWhereControllersAreNamedInAnotherOrder) {
  write("cpu/box/cpu.cfs_quota_us", "300000\n");
  write("cpu/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota_of("4:cpuacct,cpu:/box\n"), 3.0);
}

TEST_F(CpuQuota, IsNoneWhereNothingLimits) {
  EXPECT_EQ(quota_of("0::/\n"), std::nullopt) << "the root has no such file";
  EXPECT_EQ(quota_of("not a line\n"), std::nullopt);
  write("box/cpu.max", "max 100000\n");
  write("cpu/box/cpu.cfs_quota_us", "-1\n");
  write("cpu/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota_of("4:cpu:/box\n0::/box\n"), std::nullopt);
}

TEST(Cpus, AreReadAsTheKernelListsThem) {
  EXPECT_THAT(cpus_in_list("0-2,7"), ElementsAre(0, 1, 2, 7));
  EXPECT_THAT(cpus_in_list("5"), ElementsAre(5));
  EXPECT_TRUE(cpus_in_list("").empty());
  EXPECT_THROW(cpus_in_list("1-x"), std::invalid_argument);
}

TEST(Cpus, HaveACoreAndANode) {
  const std::vector<Cpu> real = cpus_of_this_process();
  ASSERT_FALSE(real.empty());
  const auto root = std::filesystem::temp_directory_path() / fmt::format("weir-cpus-{}", getpid());
  const auto cpu = root / fmt::format("cpu/cpu{}", real.front().id);
  std::filesystem::create_directories(cpu / "topology");
  std::filesystem::create_directories(cpu / "node3");
  std::ofstream(cpu / "topology/thread_siblings_list") << real.front().id << ",64\n";
  EXPECT_THAT(
      cpus_of_this_process(root),
      ElementsAre(Cpu{.id = real.front().id, .core = std::min(real.front().id, 64u), .node = 3}));
  std::filesystem::remove_all(root);
  EXPECT_TRUE(cpus_of_this_process(root).empty());
}

TEST(OwnLcores, AreTheFilesIfItHasSome) {
  config::Config config;
  config.lcores_by = config::LcoresBy::file;
  config.lcores = {{.id = 1, .roles = {Role::rx, Role::tx}}, {.id = 2, .roles = {Role::worker}}};
  EXPECT_THAT(take_lcores(config), ElementsAre(HasSubstr("each frame is handed over")));
  EXPECT_EQ(config.lcores.size(), 2u);
  config.lcores[1].roles = {Role::rx, Role::worker};
  EXPECT_TRUE(take_lcores(config).empty());
}

TEST(OwnLcores, AreCpusOfThisProcess) {
  config::Config config;
  config.lcores = {{.id = 9999, .line = 4}};
  EXPECT_FALSE(take_lcores(config).empty());
  std::vector<unsigned> mine;
  for (const Cpu& cpu : cpus_of_this_process()) {
    mine.push_back(cpu.id);
  }
  for (const config::LcoreConfig& lcore : config.lcores) {
    EXPECT_THAT(mine, testing::Contains(lcore.id));
    EXPECT_EQ(lcore.line, 4);
  }
}

} // namespace
} // namespace weir::control::lcore_choice_test
