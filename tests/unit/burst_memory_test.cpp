// SPDX-License-Identifier: BSD-3-Clause

/// Memory for bursts of frames, which the sockets of a process share.

#include "host/transport/burst_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace weir::host::burst_memory_test {
namespace {

TEST(BurstMemory, IsTheTakersUntilItGoes) {
  std::set<std::uint8_t*> before;
  {
    std::vector<BurstMemory> taken(12); // more than are kept
    for (BurstMemory& memory : taken) {
      EXPECT_FALSE(memory);
      memory = BurstMemory::take();
      EXPECT_TRUE(memory);
      before.insert(memory.frame(0));
    }
    EXPECT_EQ(before.size(), 12U) << "one was handed out twice";
  }
  BurstMemory again = BurstMemory::take();
  EXPECT_TRUE(before.contains(again.frame(0))) << "none was kept";
  std::uint8_t* const place = again.frame(0);
  again = BurstMemory();
  EXPECT_EQ(BurstMemory::take().frame(0), place);
}

TEST(BurstMemory, MovesToAnother) {
  BurstMemory first = BurstMemory::take();
  std::uint8_t* const place = first.frame(3);
  EXPECT_EQ(place - first.frame(0), 3 * 10240);
  const BurstMemory second = std::move(first);
  EXPECT_EQ(second.frame(3), place);
  EXPECT_NE(BurstMemory::take().frame(3), place);
}

TEST(BurstMemory, IsOfOneThreadAtATime) {
  std::atomic<int> mixed = 0;
  std::vector<std::thread> threads;
  for (std::uint8_t number = 1; number <= 4; ++number) {
    threads.emplace_back([&mixed, number] {
      for (int burst = 0; burst < 2000; ++burst) {
        const BurstMemory memory = BurstMemory::take();
        std::fill_n(memory.frame(burst % 32), 64, number);
        mixed += std::count(memory.frame(burst % 32), memory.frame(burst % 32) + 64, number) != 64;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(mixed, 0);
}

} // namespace
} // namespace weir::host::burst_memory_test
