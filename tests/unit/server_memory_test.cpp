// SPDX-License-Identifier: BSD-3-Clause

/// What a server is asked about its memory.

#include "support/fake_server.hpp"

#include <gtest/gtest.h>

#include <gmock/gmock.h>
#include <string>
#include <utility>
#include <vector>

namespace weir::server_memory_test {
namespace {

using server::Rank;
using test::finding;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

config::Config with_nic() {
  config::Config config;
  config.ports = {{.name = "p0", .device = "0000:3b:00.0"}};
  return config;
}

config::Config with_options(std::vector<std::string> options) {
  config::Config config;
  config.eal_options = std::move(options);
  return config;
}

/// A server of two nodes.
class HugepagesTest : public testing::Test {
 protected:
  HugepagesTest() {
    set(0, 2048, 1024, 1024);
    set(1, 2048, 0, 0);
  }

  void set(int node, int kib, int pages, int free) {
    const std::string folder = "/sys/devices/system/node/node" + std::to_string(node) +
                               "/hugepages/hugepages-" + std::to_string(kib) + "kB/";
    machine_.file(folder + "nr_hugepages", std::to_string(pages) + "\n");
    machine_.file(folder + "free_hugepages", std::to_string(free) + "\n");
  }

  auto asked(std::vector<std::string> options, std::uint64_t needed) const {
    return machine_.ask("hugepages", with_options(std::move(options)), needed);
  }

  test::FakeServer machine_;
};

TEST_F(HugepagesTest, AreEnough) {
  EXPECT_THAT(asked({"--in-memory"}, 2048),
              ElementsAre(finding(Rank::fine, "all nodes: 2048 MiB free of 2048; needed 2048")));
  EXPECT_THAT(
      asked({"--in-memory", "--socket-mem", "2048,0"}, 577),
      ElementsAre(finding(Rank::fine, "node 0: 2048 MiB free"), finding(Rank::fine, "all nodes")));
}

TEST_F(HugepagesTest, AreTooFew) {
  const auto found = asked({"--in-memory"}, 2051);
  EXPECT_THAT(found, ElementsAre(finding(Rank::wrong, "2048 MiB free of 2048; needed 2051")));
  EXPECT_EQ(found[0].mend,
            "echo 1026 > /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages");
  EXPECT_THAT(asked({"--in-memory", "-m", "4096"}, 577),
              ElementsAre(finding(Rank::wrong, "needed 4096")));
}

TEST_F(HugepagesTest, AreOnTheOtherNode) {
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--in-memory", "--socket-mem", "0,1024"},
        {"--in-memory", "--socket-mem=0,1024"}}) {
    const auto found = asked(options, 577);
    EXPECT_THAT(found, ElementsAre(finding(
                           Rank::wrong, "node 1: 0 MiB free of 0; needed 1024, by --socket-mem")));
    EXPECT_EQ(found[0].mend,
              "echo 512 > /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages");
  }
}

/// Who types the commands one after another has all that is needed.
TEST_F(HugepagesTest, AreTooFewOnANodeAndInAll) {
  const auto found = asked({"--in-memory", "--socket-mem", "2050"}, 4096);
  ASSERT_THAT(found,
              ElementsAre(finding(Rank::wrong, "node 0"),
                          finding(Rank::wrong, "all nodes: 2048 MiB free of 2048; needed 4096")));
  EXPECT_THAT(found[0].mend, HasSubstr("echo 1025 > /sys/devices/system/node/node0/"));
  EXPECT_THAT(found[1].mend, HasSubstr("echo 2048 > /sys/devices/system/node/node0/"));
  EXPECT_THAT(asked({"--in-memory", "--socket-mem", "4096"}, 4096),
              ElementsAre(finding(Rank::wrong, "node 0")));
}

TEST_F(HugepagesTest, OfSeveralSizesAddUp) {
  set(0, 1048576, 2, 1);
  EXPECT_THAT(asked({"--in-memory"}, 3072),
              ElementsAre(finding(Rank::fine, "3072 MiB free of 4096")));
}

TEST_F(HugepagesTest, AreTakenByAnother) {
  set(0, 2048, 1024, 24);
  machine_.file("/proc/812/status", "Name:\ttestpmd\nHugetlbPages:\t 2048000 kB\n");
  machine_.file("/proc/812/comm", "testpmd\n");
  EXPECT_THAT(asked({"--in-memory"}, 577),
              ElementsAre(finding(Rank::wrong, "48 MiB free of 2048; needed 577, by ports, rings "
                                               "and -m; process 812 (testpmd) has 2000 MiB")));
  machine_.file("/proc/812/comm", "weir\n");
  const auto found = asked({"--in-memory"}, 577);
  EXPECT_THAT(found, ElementsAre(finding(Rank::unknown, "process 812 (weir) has 2000 MiB")));
  EXPECT_EQ(found[0].mend, "");
}

TEST_F(HugepagesTest, NeedAFolder) {
  EXPECT_THAT(asked({}, 577),
              ElementsAre(finding(Rank::fine, "all nodes"), finding(Rank::wrong, "no hugetlbfs")));
  machine_.file("/proc/self/mounts",
                "proc /proc proc rw 0 0\nhugetlbfs /dev/hugepages hugetlbfs rw,pagesize=2M 0 0\n");
  EXPECT_THAT(asked({}, 577),
              ElementsAre(finding(Rank::fine, "all nodes"), finding(Rank::wrong, "no hugetlbfs")))
      << "the folder is not there";
  machine_.folder("/dev/hugepages");
  EXPECT_THAT(asked({}, 577), ElementsAre(finding(Rank::fine, "all nodes")));
}

TEST(Hugepages, AreNotNeeded) {
  EXPECT_THAT(test::FakeServer().ask("hugepages", with_options({"--no-huge", "-m", "77"}), 77),
              ElementsAre(finding(Rank::fine, "--no-huge")));
  const auto found =
      test::FakeServer().ask("hugepages", with_options({"--no-huge", "-m", "40"}), 77);
  EXPECT_THAT(found, ElementsAre(finding(Rank::wrong, "40 MiB, by -m with --no-huge; needed 77")));
}

TEST(Hugepages, AreOfNoNodeInAKernelWithoutNuma) {
  test::FakeServer machine;
  machine.file("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "1\n");
  machine.file("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "1\n");
  const auto found = machine.ask("hugepages", with_options({"--in-memory"}), 4);
  EXPECT_THAT(found, ElementsAre(finding(Rank::wrong, "2 MiB free of 2; needed 4")));
  EXPECT_EQ(found[0].mend, "echo 2 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
}

TEST(Hugepages, AreUnknownToTheKernel) {
  const auto found = test::FakeServer().ask("hugepages", with_options({"--in-memory"}), 4);
  EXPECT_THAT(found, ElementsAre(finding(Rank::wrong, "0 MiB free of 0; needed 4")));
}

std::string limits(const std::string& locked) {
  return "Limit                     Soft Limit           Hard Limit           Units     \n"
         "Max open files            20000                20000                files     \n"
         "Max locked memory         " +
         locked + "             bytes     \n";
}

TEST(LockedMemory, IsWrongWhereANicNeedsMore) {
  test::FakeServer machine;
  machine.file("/proc/self/limits", limits("8388608              8388608"));
  machine.file("/proc/self/status", "Name:\tweir\nCapEff:\t0000000000000000\n");
  const auto found = machine.ask("locked memory", with_nic(), 577);
  EXPECT_THAT(found, ElementsAre(finding(Rank::wrong, "at most 8 MiB; the NICs need 577")));
  EXPECT_THAT(found[0].mend, HasSubstr("ulimit -l unlimited"));
  auto more = with_nic();
  more.eal_options = {"--socket-mem", "6,3"};
  EXPECT_THAT(machine.ask("locked memory", more, 8),
              ElementsAre(finding(Rank::wrong, "8 MiB; the NICs need 9")));
  EXPECT_THAT(machine.ask("locked memory", with_nic(), 8),
              ElementsAre(finding(Rank::fine, "8 MiB")));
}

TEST(LockedMemory, HasNoLimit) {
  test::FakeServer machine;
  machine.file("/proc/self/limits", limits("unlimited            unlimited"));
  EXPECT_THAT(machine.ask("locked memory", with_nic(), 577),
              ElementsAre(finding(Rank::fine, "no limit")));
}

/// CAP_IPC_LOCK is number 14 (capability.h).
TEST(LockedMemory, HasNoLimitForWhoMayLock) {
  test::FakeServer machine;
  machine.file("/proc/self/limits", limits("65536                65536"));
  machine.file("/proc/self/status", "CapInh:\t0000000000000000\nCapEff:\t0000000000004000\n");
  EXPECT_THAT(machine.ask("locked memory", with_nic(), 577),
              ElementsAre(finding(Rank::fine, "no limit")));
  machine.file("/proc/self/status", "CapInh:\t0000000000004000\nCapEff:\t0000000000002000\n");
  EXPECT_THAT(machine.ask("locked memory", with_nic(), 577),
              ElementsAre(finding(Rank::wrong, "at most 0")));
}

TEST(LockedMemory, IsNotNeededByVirtualDevices) {
  config::Config config;
  config.ports = {{.name = "p0", .device = "net_memif0,socket=/run/a:b"},
                  {.name = "p1", .device = "auxiliary:mlx5_core.sf.2"}};
  EXPECT_THAT(test::FakeServer().ask("locked memory", config, 577), IsEmpty());
}

} // namespace
} // namespace weir::server_memory_test
