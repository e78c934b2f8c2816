// SPDX-License-Identifier: BSD-3-Clause
#include "netsim/fold_servers.hpp"

#include <gtest/gtest.h>

namespace weir::netsim::netsim_servers_test {
namespace {

/// One block of two packets, the second 10 after the first; folding takes 100.
FoldServers two_packets(FoldServers::Buffers design, std::uint32_t servers) {
  FoldServers settings;
  settings.design = design;
  settings.buffers = 2;
  settings.servers = settings.servers_a_block = servers;
  settings.fold_time = 100;
  settings.copy_time = 10;
  settings.children = 2;
  settings.blocks = 1;
  settings.spacing = 10;
  return settings;
}

TEST(FoldServers, OneServerFoldsOneAfterTheOther) {
  const FoldServersResult result = run_fold_servers(two_packets(FoldServers::Buffers::single, 1));
  EXPECT_EQ(result.duration, 200U);
  EXPECT_EQ(result.largest_queue, 2U);
  EXPECT_EQ(result.most_buffers, 1U);
  EXPECT_EQ(result.mean_block_latency, 200U);
}

/// The second server waits for the buffer.
TEST(FoldServers, SingleBufferIsACriticalSection) {
  EXPECT_EQ(run_fold_servers(two_packets(FoldServers::Buffers::single, 2)).duration, 200U);
}

/// 10 … 110 into the other buffer, and 100 to add up both.
TEST(FoldServers, LastHandlerAddsTheBuffersUp) {
  const FoldServersResult result = run_fold_servers(two_packets(FoldServers::Buffers::multiple, 2));
  EXPECT_EQ(result.duration, 210U);
  EXPECT_EQ(result.most_buffers, 2U);
}

/// Copies until 10 and 20. The second finds the first and adds: 120.
TEST(FoldServers, TreeAddsWhatItFinds) {
  const FoldServersResult result = run_fold_servers(two_packets(FoldServers::Buffers::tree, 2));
  EXPECT_EQ(result.duration, 120U);
  EXPECT_EQ(result.most_buffers, 2U);
}

/// Five leaves: the fifth has no neighbour below the root. Copies end at 10 … 50; 0+1 at 120, 2+3
/// at 140, those two at 240. The fifth, which waits at the top since 50, ends at 340.
TEST(FoldServers, TreeOfAnOddNumber) {
  FoldServers settings = two_packets(FoldServers::Buffers::tree, 5);
  settings.children = 5;
  EXPECT_EQ(run_fold_servers(settings).duration, 340U);
}

/// Two blocks, two servers; each block's packets go to a server of its own. The sending order
/// decides whether both work at the same time. In order: 0, 10 to the first; 20, 30 to the second,
/// which ends at 220. Staggered: the second begins at 10 and ends at 210.
TEST(FoldServers, StaggeredSendingSpreadsABlock) {
  FoldServers settings = two_packets(FoldServers::Buffers::single, 2);
  settings.servers_a_block = 1;
  settings.blocks = 2;
  EXPECT_EQ(run_fold_servers(settings).duration, 220U);
  settings.sending = FoldServers::Sending::staggered;
  EXPECT_EQ(run_fold_servers(settings).duration, 210U);
}

/// The standard error of n exponential intervals is their mean over the root of n.
TEST(FoldServers, ExponentialArrivalsHaveTheirMean) {
  FoldServers settings = two_packets(FoldServers::Buffers::single, 1);
  settings.children = 1;
  settings.blocks = 100'000;
  settings.fold_time = 1;
  settings.spacing = 1000;
  settings.arrivals = FoldServers::Arrivals::exponential;
  const double mean = static_cast<double>(run_fold_servers(settings).duration) / 100'000;
  EXPECT_NEAR(mean, 1000, 4 * 1000 / 316.0); // four standard errors
}

TEST(FoldServers, RefusesServersThatDoNotDivide) {
  FoldServers settings;
  settings.servers = 10;
  settings.servers_a_block = 4;
  EXPECT_THROW(run_fold_servers(settings), SimulationError);
}

} // namespace
} // namespace weir::netsim::netsim_servers_test
