// SPDX-License-Identifier: BSD-3-Clause

/// NUMA: which node's lcores poll a port, where frames' memory is, and who is told where frames
/// cross between nodes.

#include "control/numa.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::control::numa_test {
namespace {

using Lines = std::vector<std::string>;

TEST(NodeOfFrames, IsThatOfMostPorts) {
  struct Row {
    const char* description;
    std::vector<PortNode> ports;
    int node;
  };

  const std::vector<Row> rows{
      {"no port", {}, kNoNode},
      {"a device of no node", {{"p0", kNoNode}}, kNoNode},
      {"all on one", {{"p0", 1}, {"p1", 1}}, 1},
      {"most on one", {{"p0", 0}, {"p1", 1}, {"p2", 1}}, 1},
      {"as many on both", {{"p0", 1}, {"p1", 0}}, 0},
      {"devices of no node do not vote", {{"p0", kNoNode}, {"p1", kNoNode}, {"p2", 1}}, 1},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(node_of_frames(row.ports), row.node) << row.description;
  }
}

Placement::DataLcore poller(unsigned id, int node, std::vector<std::uint16_t> ports) {
  Placement::DataLcore lcore;
  lcore.id = id;
  lcore.node = node;
  for (const std::uint16_t port : ports) {
    lcore.receives.push_back({port, 0});
  }
  lcore.transmits = std::move(ports);
  return lcore;
}

Placement::DataLcore worker(unsigned id, int node) {
  Placement::DataLcore lcore;
  lcore.id = id;
  lcore.node = node;
  lcore.works = true;
  return lcore;
}

Lines crossings_of(const std::vector<PortNode>& ports, std::vector<Placement::DataLcore> lcores) {
  Placement placement;
  placement.lcores = std::move(lcores);
  return crossings(ports, placement, node_of_frames(ports));
}

TEST(Crossings, AreNoneOnOneNode) {
  EXPECT_EQ(crossings_of({{"p0", 1}, {"p1", 1}}, {poller(2, 1, {0, 1}), worker(3, 1)}), Lines{});
}

TEST(Crossings, NeedTwoKnownNodes) {
  EXPECT_EQ(crossings_of({{"p0", kNoNode}}, {poller(2, 1, {0}), worker(3, 0)}), Lines{});
  EXPECT_EQ(crossings_of({{"p0", 1}}, {poller(2, kNoNode, {0}), worker(3, kNoNode)}), Lines{});
}

TEST(Crossings, NameThePollingLcoreAndItsRoles) {
  Placement::DataLcore receiver = poller(2, 0, {0});
  receiver.transmits.clear();
  Placement::DataLcore transmitter = poller(4, 0, {0});
  transmitter.receives.clear();
  EXPECT_EQ(
      crossings_of({{"p0", 1}}, {poller(6, 0, {0}), receiver, transmitter}),
      (Lines{
          "port p0 is on NUMA node 1, lcore 6, which polls it, on node 0: each frame crosses the "
          "interconnect; give the role rx and tx only to lcores of node 1",
          "port p0 is on NUMA node 1, lcore 2, which polls it, on node 0: each frame crosses the "
          "interconnect; give the role rx only to lcores of node 1",
          "port p0 is on NUMA node 1, lcore 4, which polls it, on node 0: each frame crosses the "
          "interconnect; give the role tx only to lcores of node 1"}));
}

TEST(Crossings, AreNotThoseOfOtherPortsLcores) {
  EXPECT_EQ(
      crossings_of({{"p0", 0}, {"p1", 0}, {"p2", 1}}, {poller(2, 0, {0, 1}), poller(10, 1, {2})}),
      (Lines{"port p2 is on NUMA node 1, the memory of all frames on node 0, like most ports: the "
             "device reads "
             "and writes across the interconnect; put all ports on one node"}));
}

TEST(Crossings, NameWorkersFarFromFrames) {
  EXPECT_EQ(crossings_of({{"p0", 1}}, {poller(10, 1, {0}), worker(3, 0), worker(11, 1)}),
            (Lines{"lcore 3, a worker, is on NUMA node 0, the memory of all frames on node 1: each "
                   "contribution "
                   "crosses the interconnect; give the role worker only to lcores of node 1"}));
}

TEST(Misplaced, SaysWhereAndWhatHelps) {
  EXPECT_EQ(misplaced("mbufs", 1), "mbufs belong on NUMA node 1, where EAL has no memory left: "
                                   "they are on another node, and each access "
                                   "crosses the interconnect; give EAL more there (--socket-mem "
                                   "under eal.options, MiB by node, or "
                                   "hugepages of that node)");
}

} // namespace
} // namespace weir::control::numa_test
