// SPDX-License-Identifier: BSD-3-Clause

/// What a server is asked about its CPUs, and where things are.

#include "support/fake_server.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <gmock/gmock.h>
#include <string>
#include <vector>

namespace weir::server_cpus_test {
namespace {

using config::Idle;
using config::LcoresBy;
using config::Role;
using server::Rank;
using test::finding;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Four cores with two threads each, CPU n and n + 4; cores 0 and 1 on node 0, the others on
/// node 1.
class Cpus : public testing::Test {
 protected:
  Cpus() {
    machine_.file("/sys/devices/system/cpu/present", "0-7\n");
    machine_.file("/sys/devices/system/cpu/online", "0-7\n");
    machine_.file("/sys/devices/system/cpu/isolated", "\n");
    for (unsigned id = 0; id < 8; ++id) {
      put(id, "topology/thread_siblings_list", fmt::format("{},{}\n", id % 4, id % 4 + 4));
      machine_.folder(fmt::format("/sys/devices/system/cpu/cpu{}/node{}", id, id % 4 / 2));
    }
  }

  void put(unsigned cpu, const std::string& name, const std::string& text) {
    machine_.file(fmt::format("/sys/devices/system/cpu/cpu{}/{}", cpu, name), text);
  }

  /// Control on CPU 0, which sleeps, and all else on the others.
  static config::Config on(const std::vector<unsigned>& cpus, Idle idle = Idle::spin) {
    config::Config config;
    config.lcores_by = LcoresBy::file;
    config.lcores.push_back({.id = 0, .roles = {Role::control}, .idle = Idle::sleep});
    for (const unsigned cpu : cpus) {
      config.lcores.push_back(
          {.id = cpu, .roles = {Role::rx, Role::worker, Role::tx}, .idle = idle});
    }
    return config;
  }

  test::FakeServer machine_;
};

TEST_F(Cpus, AreThere) {
  EXPECT_THAT(machine_.ask("CPUs", on({2, 3})),
              ElementsAre(finding(Rank::fine, "0,2,3 are there")));
}

TEST_F(Cpus, AreNotThere) {
  machine_.file("/sys/devices/system/cpu/online", "0-2,4-7\n");
  const auto found = machine_.ask("CPUs", on({3, 8}));
  EXPECT_THAT(found, ElementsAre(finding(Rank::wrong, "lcore 3: the CPU is offline"),
                                 finding(Rank::wrong, "lcore 8: this machine has no such CPU")));
  EXPECT_EQ(found[0].mend, "echo 1 > /sys/devices/system/cpu/cpu3/online");
}

/// cgroups(7), version 2: microseconds of each period.
TEST_F(Cpus, HaveTheTimeThatControlGroupsGrant) {
  EXPECT_THAT(machine_.ask("CPU time", on({2, 3})),
              ElementsAre(finding(Rank::fine, "no control group limits it")));
  machine_.file("/proc/self/cgroup", "0::/a/b\n");
  machine_.file("/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  const auto found = machine_.ask("CPU time", on({2, 3}));
  EXPECT_THAT(found, ElementsAre(finding(Rank::warning, "2 lcores do not sleep, and control "
                                                        "groups grant 1.5 CPUs")));
  EXPECT_THAT(found[0].mend, HasSubstr("grant the container 2 CPUs"));
  EXPECT_THAT(machine_.ask("CPU time", on({2})),
              ElementsAre(finding(Rank::fine, "grant 1.5 CPUs, and 1 of the lcores")));
  EXPECT_THAT(machine_.ask("CPU time", on({2, 3}, Idle::sleep)),
              ElementsAre(finding(Rank::fine, "0 of the lcores do not sleep")));
}

TEST_F(Cpus, AreIsolated) {
  const auto found = machine_.ask("isolation", on({2, 3}));
  EXPECT_THAT(found, ElementsAre(finding(Rank::warning, "other programs run on CPU 2,3 too")));
  EXPECT_THAT(found[0].mend, HasSubstr("isolcpus=2,3 nohz_full=2,3 rcu_nocbs=2,3"));
  machine_.file("/sys/devices/system/cpu/isolated", "2\n");
  EXPECT_THAT(machine_.ask("isolation", on({2, 3})),
              ElementsAre(finding(Rank::warning, "other programs run on CPU 3 too")));
  machine_.file("/sys/devices/system/cpu/isolated", "2-3\n");
  EXPECT_THAT(machine_.ask("isolation", on({2, 3})),
              ElementsAre(finding(Rank::fine, "no other program runs on CPU 2,3")));
  EXPECT_THAT(machine_.ask("isolation", on({1}, Idle::sleep)), IsEmpty()) << "they may be shared";
}

/// The kernel keeps those from who does not name them.
TEST_F(Cpus, ThatAreIsolatedAreNotSeenByAuto) {
  config::Config none_is = on({1});
  none_is.lcores_by = LcoresBy::the_switch;
  EXPECT_THAT(machine_.ask("isolation", none_is)[0].mend, HasSubstr("name 1 under lcores:"));
  machine_.file("/sys/devices/system/cpu/isolated", "2-3\n");
  config::Config config = on({1});
  config.lcores_by = LcoresBy::the_switch;
  EXPECT_THAT(machine_.ask("isolation", config),
              ElementsAre(finding(Rank::warning,
                                  "auto takes CPU 1, since it does not see the isolated 2,3")));
}

TEST_F(Cpus, ShareACore) {
  const auto found = machine_.ask("hardware threads", on({2, 3}));
  EXPECT_THAT(
      found,
      ElementsAre(finding(Rank::warning, "lcore 2's core runs other programs too, on CPU 6"),
                  finding(Rank::warning, "lcore 3's core runs other programs too, on CPU 7")));
  EXPECT_EQ(found[0].mend, "echo 0 > /sys/devices/system/cpu/cpu6/online");
  machine_.file("/sys/devices/system/cpu/online", "0-5\n");
  EXPECT_THAT(machine_.ask("hardware threads", on({2, 3})),
              ElementsAre(finding(Rank::fine, "a core for itself")));
}

TEST_F(Cpus, ShareACoreThatIsIsolated) {
  machine_.file("/sys/devices/system/cpu/isolated", "2,6\n");
  EXPECT_THAT(machine_.ask("hardware threads", on({2})),
              ElementsAre(finding(Rank::fine, "a core for itself")));
  EXPECT_THAT(machine_.ask("hardware threads", on({2, 6})),
              ElementsAre(finding(Rank::warning, "lcore 2's core runs lcore 6 too"),
                          finding(Rank::warning, "lcore 6's core runs lcore 2 too")));
}

TEST_F(Cpus, HaveAClock) {
  EXPECT_THAT(machine_.ask("clock", on({2, 3})),
              ElementsAre(finding(Rank::unknown, "a hypervisor")));
  put(2, "cpufreq/scaling_governor", "performance\n");
  put(3, "cpufreq/scaling_governor", "powersave\n");
  const auto found = machine_.ask("clock", on({2, 3}));
  EXPECT_THAT(found, ElementsAre(finding(Rank::warning, "governor powersave on CPU 3")));
  EXPECT_EQ(found[0].mend, "cpupower --cpu 3 frequency-set --governor performance");
  EXPECT_THAT(machine_.ask("clock", on({2})), ElementsAre(finding(Rank::fine, "performance")));
}

/// Control may: nothing waits for it.
TEST_F(Cpus, WakeUpLate) {
  constexpr std::array names{"POLL", "C1", "C6"};
  constexpr std::array latencies{0, 2, 133};
  for (const unsigned cpu : {0u, 1u}) {
    for (const unsigned state : {0u, 1u, 2u}) {
      const std::string folder = fmt::format("cpuidle/state{}/", state);
      put(cpu, folder + "name", fmt::format("{}\n", names[state]));
      put(cpu, folder + "latency", fmt::format("{}\n", latencies[state]));
      put(cpu, folder + "disable", "0\n");
    }
  }
  const auto found = machine_.ask("idle states", on({1}, Idle::sleep));
  EXPECT_THAT(found,
              ElementsAre(finding(Rank::warning, "CPU 1 may take 133 us to wake up, from C6")));
  EXPECT_EQ(found[0].mend, "cpupower --cpu 1 idle-set --disable-by-latency 11");
  EXPECT_THAT(machine_.ask("idle states", on({1})),
              ElementsAre(finding(Rank::fine, "lcores that spin use none: CPU 1")));
  put(1, "cpuidle/state2/disable", "1\n");
  EXPECT_THAT(machine_.ask("idle states", on({1}, Idle::sleep)), IsEmpty());
}

/// The NIC is on node 1.
class Numa : public Cpus {
 protected:
  Numa() {
    machine_.file("/sys/bus/pci/devices/0000:3b:00.0/numa_node", "1\n");
    set_free(1, 1024);
  }

  void set_free(int node, int pages) {
    machine_.file(
        fmt::format("/sys/devices/system/node/node{}/hugepages/hugepages-2048kB/free_hugepages",
                    node),
        fmt::format("{}\n", pages));
  }

  static config::Config with_nic(const std::vector<unsigned>& cpus) {
    config::Config config = on(cpus);
    config.ports = {{.name = "p0", .device = "0000:3b:00.0"}};
    return config;
  }
};

TEST_F(Numa, IsAllOnOneNode) {
  EXPECT_THAT(machine_.ask("NUMA", with_nic({2}), 577),
              ElementsAre(finding(Rank::fine, "on node 1")));
}

TEST_F(Numa, HasAFarLcore) {
  EXPECT_THAT(machine_.ask("NUMA", with_nic({1}), 577),
              ElementsAre(finding(Rank::warning,
                                  "port p0 is on NUMA node 1, lcore 1, which polls it, on node 0"),
                          finding(Rank::warning, "lcore 1, a worker, is on NUMA node 0")));
}

TEST_F(Numa, HasItsMemoryElsewhere) {
  set_free(1, 100);
  set_free(0, 1024);
  const auto found = machine_.ask("NUMA", with_nic({2}), 577);
  EXPECT_THAT(
      found,
      ElementsAre(finding(
          Rank::warning,
          "node 1, that of the ports, has 200 MiB of free hugepages; frames and slots need 577")));
  EXPECT_THAT(found[0].mend, HasSubstr("echo 289 > /sys/devices/system/node/node1/"));
}

TEST_F(Numa, IsNoQuestionWithoutHugepagesOrNodes) {
  config::Config config = with_nic({1});
  config.eal_options = {"--no-huge"};
  EXPECT_THAT(machine_.ask("NUMA", config, 577), IsEmpty());
  machine_.file("/sys/bus/pci/devices/0000:3b:00.0/numa_node", "-1\n");
  EXPECT_THAT(machine_.ask("NUMA", with_nic({1}), 577), IsEmpty());
}

} // namespace
} // namespace weir::server_cpus_test
