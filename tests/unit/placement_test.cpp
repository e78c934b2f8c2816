// SPDX-License-Identifier: BSD-3-Clause

/// Placement: rows of lcores' roles and, for each data lcore, what it gets.

#include "control/placement.hpp"
#include "control/work_division.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace weir::control::placement_test {
namespace {

const std::vector<config::Role> kControl{config::Role::control};
const std::vector<config::Role> kRx{config::Role::rx};
const std::vector<config::Role> kWorker{config::Role::worker};
const std::vector<config::Role> kTx{config::Role::tx};
const std::vector<config::Role> kEnds{config::Role::rx, config::Role::tx};
const std::vector<config::Role> kAll{config::Role::rx, config::Role::worker, config::Role::tx};

/// Rings of two members each. No two members are neighbours in another ring, unless the rings share
/// all.
std::vector<ring::RingSpec> rings(std::size_t count, bool share_members = false) {
  std::vector<ring::RingSpec> rings;
  for (std::size_t i = 0; i < count; ++i) {
    ring::RingSpec& ring = rings.emplace_back();
    ring.id = static_cast<std::uint32_t>(i + 1);
    for (std::uint8_t member = 1; member <= 2; ++member) {
      const auto network = static_cast<std::uint8_t>(share_members ? 0 : i);
      const std::uint8_t address[]{10, 0, network, member};
      ring.members.push_back({wire::IpAddress::from_v4(address), {}});
    }
  }
  return rings;
}

/// "rx 0,2 tx 1 ring 0 | helps 0": what each data lcore gets.
std::string dealt(const std::vector<std::vector<config::Role>>& roles, std::size_t ports,
                  std::vector<ring::RingSpec> specs, std::uint16_t rx_queues = 1,
                  const NumaNodes& nodes = {}) {
  config::Config config;
  config.ports.resize(ports);
  for (config::PortConfig& port : config.ports) {
    port.rx_queues = rx_queues;
  }
  for (unsigned id = 0; id < roles.size(); ++id) {
    config.lcores.push_back({.id = id, .roles = roles[id]});
  }
  config.rings = specs;
  const Placement placement = place(config, ring::RingSet(std::move(specs)), nodes);
  std::string text;
  for (const Placement::DataLcore& lcore : placement.lcores) {
    text += text.empty() ? "" : "|";
    for (const Placement::Queue& queue : lcore.receives) {
      text += fmt::format(" rx {}.{}", queue.port, queue.queue);
    }
    for (const std::uint16_t port : lcore.transmits) {
      text += fmt::format(" tx {}", port);
    }
    for (const std::uint16_t ring : lcore.rings) {
      text += fmt::format(" ring {}", ring);
    }
    text += lcore.helps ? fmt::format(" helps {}", *lcore.helps) : "";
  }
  return text;
}

TEST(Placement, OneLcoreDoesAll) {
  EXPECT_EQ(dealt({kControl, kAll}, 2, rings(2)), " rx 0.0 rx 1.0 tx 0 tx 1 ring 0 ring 1");
}

TEST(Placement, QueuesPortsAndRingsAreDealtInTurn) {
  EXPECT_EQ(dealt({kAll, kAll}, 2, rings(3), 2),
            " rx 0.0 rx 1.0 tx 0 ring 0 ring 2| rx 0.1 rx 1.1 tx 1 ring 1");
  EXPECT_EQ(dealt({kRx, kTx, kWorker, kWorker}, 2, rings(2)),
            " rx 0.0 rx 1.0| tx 0 tx 1| ring 0| ring 1");
}

TEST(Placement, PortsGoToLcoresOfTheirNode) {
  EXPECT_EQ(dealt({kEnds, kEnds}, 2, {}, 1, {.lcores = {0, 1}, .ports = {1, 0}}),
            " rx 1.0 tx 1| rx 0.0 tx 0");
  EXPECT_EQ(dealt({kEnds, kEnds, kEnds}, 2, {}, 2, {.lcores = {1, 1, 0}, .ports = {1, 1}}),
            " rx 0.0 rx 1.0 tx 0| rx 0.1 rx 1.1 tx 1|");
}

/// A worker needs a queue of the port to have its rings' frames steered there.
TEST(Placement, APortsQueuesGoToAsManyLcoresAsCanBe) {
  config::Config config;
  config.ports.resize(2);
  config.lcores = {{.id = 0, .roles = kEnds}, {.id = 1, .roles = kEnds}};
  Placement placement = place(config, ring::RingSet(std::vector<ring::RingSpec>{}), {});
  placement.close_port(0);
  placement.open_port(2, 2, kNoNode);
  for (const Placement::DataLcore& lcore : placement.lcores) {
    EXPECT_EQ(std::ranges::count(lcore.receives, 2, &Placement::Queue::port), 1);
  }
}

TEST(Placement, PortsGoToAnyLcoreWhereTheirNodeHasNone) {
  EXPECT_EQ(dealt({kEnds, kEnds}, 2, {}, 1, {.lcores = {0, 0}, .ports = {1, 1}}),
            " rx 0.0 tx 0| rx 1.0 tx 1");
  EXPECT_EQ(dealt({kEnds, kEnds}, 2, {}, 1, {.lcores = {1, 0}, .ports = {kNoNode, kNoNode}}),
            " rx 0.0 tx 0| rx 1.0 tx 1");
}

TEST(Placement, ParallelRingsHaveDifferentWorkers) {
  EXPECT_EQ(dealt({kEnds, kWorker, kWorker}, 1, rings(3, true)),
            " rx 0.0 tx 0| ring 0 ring 2| ring 1");
}

/// The first worker of two neighbours keeps what belongs to no connection, and all lcores must know
/// whether another one has connections between them too.
TEST(Placement, NeighboursHaveAFirstWorker) {
  config::Config config;
  config.ports.resize(1);
  config.lcores = {{.id = 0, .roles = kAll}, {.id = 1, .roles = kAll}};
  const std::vector<ring::RingSpec> specs = rings(2, true);
  const std::vector<ring::RingSpec> others = rings(2);
  ring::RingSet set({specs[0], specs[1]});
  Placement placement = place(config, set);
  for (std::uint16_t pair = 1; pair <= set.pairs(); ++pair) {
    EXPECT_EQ(placement.pair(pair).worker, 0U);
    EXPECT_TRUE(placement.pair(pair).is_shared);
  }
  ring::RingSpec beside = others[1];
  beside.id = 7;
  const std::size_t worker = worker_for(placement, set, ring::Ring(beside));
  const std::uint16_t index = set.next_index();
  set = set.with(beside);
  placement.assign(index, set, worker);
  const std::uint16_t pair = set.pair_of(ring::RingChild{index, 0});
  EXPECT_EQ(placement.pair(pair).worker, worker);
  EXPECT_EQ(placement.pair(set.reverse_of(pair)).worker, worker);
  EXPECT_FALSE(placement.pair(pair).is_shared);
  beside.id = 8;
  EXPECT_NE(worker_for(placement, set, ring::Ring(beside)), worker) << "a parallel ring";
}

/// What `weir --dry-run` tells.
TEST(Placement, IsToldWithWhatAJobLacks) {
  config::Config config;
  config.ports.resize(1);
  config.lcores = {{.id = 2, .roles = kAll}, {.id = 3, .roles = kAll}};
  const auto told = [&](const ring::RingSet& set) { return division_of(place(config, set), set); };
  EXPECT_EQ(told(ring::RingSet(rings(3, true))),
            (std::vector<std::string>{"lcore 2: rings 1, 3", "lcore 3: ring 2"}));
  EXPECT_EQ(
      told(ring::RingSet(rings(1))),
      (std::vector<std::string>{
          "lcore 2: ring 1",
          "warning: ring 1 has one worker, lcore 2, and no ring is for lcore 3, which only "
          "makes reductions; allowed: parallel: 2 for this ring, and its ranks name all these "
          "rings"}));
  config.lcores.pop_back();
  EXPECT_TRUE(told(ring::RingSet(rings(1))).empty()) << "there is nothing to choose";
}

TEST(Placement, WorkersWithoutARingHelpThoseThatHaveSome) {
  EXPECT_EQ(dealt({kEnds, kWorker, kWorker, kWorker}, 1, rings(1)),
            " rx 0.0 tx 0| ring 0| helps 1| helps 1");
  EXPECT_EQ(dealt({kEnds, kWorker, kWorker, kWorker, kWorker, kWorker}, 1, rings(2)),
            " rx 0.0 tx 0| ring 0| ring 1| helps 1| helps 2| helps 1");
  EXPECT_EQ(dealt({kAll, kAll}, 2, rings(1)), " rx 0.0 tx 0 ring 0| rx 1.0 tx 1 helps 0");
}

TEST(Placement, NobodyHelpsWhereThereIsNoRing) {
  EXPECT_EQ(dealt({kAll, kAll}, 2, {}), " rx 0.0 tx 0| rx 1.0 tx 1");
}

TEST(Placement, EalNumbersLcoresFromControlOn) {
  config::Config config;
  config.ports.resize(1);
  config.lcores = {
      {.id = 7, .roles = kWorker}, {.id = 3, .roles = kControl}, {.id = 9, .roles = kEnds}};
  EXPECT_EQ(eal_lcores(place(config, ring::RingSet({}))), "0@3,1@7,2@9");
}

} // namespace
} // namespace weir::control::placement_test
