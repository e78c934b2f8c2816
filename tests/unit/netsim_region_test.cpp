// SPDX-License-Identifier: BSD-3-Clause
#include "netsim/region_run.hpp"
#include "support/sanitized.hpp"

#include <gtest/gtest.h>

namespace weir::netsim::netsim_region_test {
namespace {

// One packet at 25 GB/s: 144 bytes take 5.76 ns, a header 0.64; a switch 150 ns, memory 120 ns.
constexpr Time kPacket = 5760;
constexpr Time kHeader = 640;
constexpr Time kSwitch = 150'000;
constexpr Time kMemory = 120'000;

// Enough to fill small tables, for the tests of what they cost.
constexpr std::uint64_t kSizeable = test::rounds(1 << 20);

RegionNetwork without_chance() {
  RegionNetwork network = dgx2_network();
  network.memory_spread = 0;
  return network;
}

RegionSettings two_gpus(RegionSettings::Method method) {
  RegionSettings settings;
  settings.method = method;
  settings.gpus = 2; // one in each group
  return settings;
}

/// The home of address 0 is the first group's switch. GPU 1's write crosses its own switch and that
/// one. The sum comes back the same way.
TEST(Region, PushOfOnePacket) {
  const RegionResult result =
      run_region(without_chance(), 128, two_gpus(RegionSettings::Method::push));
  EXPECT_EQ(result.duration, kMemory + 2 * (kPacket + kSwitch) + (kPacket + kSwitch) + kPacket);
  EXPECT_EQ(result.folded, 2U);
  EXPECT_EQ(result.evictions, 0U);
}

/// GPU 1 asks: a header over two switches to GPU 0, whose memory answers over two switches. Then
/// GPU 1's write goes over two switches.
TEST(Region, PullOfOnePacket) {
  const RegionResult result =
      run_region(without_chance(), 128, two_gpus(RegionSettings::Method::pull));
  EXPECT_EQ(result.duration,
            2 * (kHeader + kSwitch) + kHeader + kMemory + 2 * (2 * (kPacket + kSwitch) + kPacket));
  EXPECT_EQ(result.folded, 2U); // on the way at the second switch, then at the first hop
}

/// §VI-A: 150 GB/s · 128 / (144 + 16) = 120 GB/s is the most payload that a GPU's ports can carry.
TEST(Region, LargeMessagesComeNearTheBound) {
  RegionSettings settings;
  settings.waves = 64;
  constexpr std::uint64_t kBytes = 4 << 20;
  const Time bound = transmission_time(kBytes, 120'000'000'000 * 8);
  const Time push = run_region(dgx2_network(), kBytes, settings).duration;
  EXPECT_GT(push, bound);
  EXPECT_LT(push, bound * 110 / 100);
  settings.method = RegionSettings::Method::pull;
  settings.table_bytes = 4096;
  const Time pull = run_region(dgx2_network(), kBytes, settings).duration;
  EXPECT_GT(pull, push); // requests share the links
  EXPECT_LT(pull, bound * 115 / 100);
}

/// §VI-C: without waves packets find full tables, and partial sums go to home GPUs.
TEST(Region, PushWithoutWavesEvicts) {
  RegionSettings settings;
  settings.waves = 64;
  const RegionResult waves = run_region(dgx2_network(), kSizeable, settings);
  settings.waves = 0;
  const RegionResult none = run_region(dgx2_network(), kSizeable, settings);
  EXPECT_GT(none.evictions, 10 * waves.evictions);
  EXPECT_GT(none.duration, waves.duration * 13 / 10);
}

/// A full table at the first hop delays requests; nothing is evicted.
TEST(Region, PullWithSmallTablesIsSlower) {
  RegionSettings settings;
  settings.method = RegionSettings::Method::pull;
  settings.table_bytes = 128;
  const RegionResult small = run_region(dgx2_network(), kSizeable, settings);
  settings.table_bytes = 4096;
  const RegionResult large = run_region(dgx2_network(), kSizeable, settings);
  EXPECT_GT(small.duration, 2 * large.duration);
  EXPECT_EQ(small.evictions, 0U);
}

TEST(Region, SynchronisationComesFirst) {
  RegionSettings settings = two_gpus(RegionSettings::Method::pull);
  const Time pull = run_region(without_chance(), 128, settings).duration;
  const Time flags = run_region(without_chance(), 256, settings).duration;
  settings.method = RegionSettings::Method::pull_synchronised;
  EXPECT_EQ(run_region(without_chance(), 128, settings).duration, pull + flags);
}

/// On a fat tree, in every method, each GPU gets every sum, and two equal runs give equal results.
TEST(Region, FatTreeEnds) {
  constexpr std::uint64_t kBytes = test::rounds(1 << 17);
  for (const auto method : {RegionSettings::Method::push, RegionSettings::Method::pull}) {
    RegionSettings settings;
    settings.method = method;
    settings.gpus = 128;
    const RegionResult result = run_region(klenk_fat_tree(), kBytes, settings);
    EXPECT_EQ(result, run_region(klenk_fat_tree(), kBytes, settings));
    EXPECT_GT(result.duration, transmission_time(kBytes, 120'000'000'000 * 8));
  }
}

TEST(Region, SlowGpuSlowsAllDown) {
  RegionNetwork network = dgx2_network();
  const RegionSettings settings;
  const Time even = run_region(network, kSizeable, settings).duration;
  network.slow_gpu = 3;
  EXPECT_GT(run_region(network, kSizeable, settings).duration, even * 13 / 10);
}

/// One packet a GPU: nothing but the late one's is under way when it comes.
TEST(Region, LateGpuMakesAllLate) {
  RegionNetwork network = without_chance();
  RegionSettings settings = two_gpus(RegionSettings::Method::push);
  const Time even = run_region(network, 128, settings).duration;
  network.late_gpu = 1;
  network.late_by = 700'000;
  EXPECT_EQ(run_region(network, 128, settings).duration, even + 700'000);
}

TEST(Region, RefusesATableWithoutAnEntry) {
  RegionSettings settings;
  settings.table_bytes = 127;
  EXPECT_THROW(run_region(dgx2_network(), 128, settings), SimulationError);
}

} // namespace
} // namespace weir::netsim::netsim_region_test
