// SPDX-License-Identifier: BSD-3-Clause

/// What tenants may have. A frame is said to take a MiB, so a ring of two ranks, a window of 2 and
/// one packet a message takes 2N x L x (H - 1) = 4 MiB for its slots' frames and 8 for hellos that
/// wait (docs/configuration.md; 4 for each rank), and less than one for the slots themselves.

#include "control/memory.hpp"
#include "control/tenants.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <gmock/gmock.h>
#include <string>
#include <vector>

namespace weir::control::tenants_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::size_t kMbufBytes = 1U << 20;

/// Of two ranks, whose addresses have this number. One packet a message.
ring::RingSpec ring_of(std::uint32_t id, const std::string& tenant, unsigned hosts) {
  return {.id = id,
          .window = 2,
          .max_message_bytes = 1024,
          .members = {{*wire::parse_ip(fmt::format("10.0.{}.1", hosts)), {}},
                      {*wire::parse_ip(fmt::format("10.0.{}.2", hosts)), {}}},
          .tenant = tenant};
}

/// The error of adding the ring; empty: there is none.
std::string refusal(const Tenants& tenants, const ring::RingSet& set, const ring::RingSpec& spec) {
  try {
    tenants.check(ring::Ring(spec), set);
    return {};
  } catch (const RingRefused& error) {
    return error.what();
  }
}

TEST(Tenants, HaveSoManyRings) {
  const ring::RingSet set({ring_of(1, "red", 1), ring_of(2, "red", 2), ring_of(3, "", 3)});
  const Tenants tenants({{.name = "red", .rings = 2}, {.name = "blue", .rings = 0}}, kMbufBytes,
                        set);
  EXPECT_EQ(refusal(tenants, set, ring_of(4, "red", 4)),
            "ring 4: tenant red may have 2 rings and has 2: ring 1, ring 2; allowed: withdraw one "
            "of these, or configure more rings: for the tenant");
  EXPECT_THAT(refusal(tenants, set, ring_of(4, "blue", 4)),
              HasSubstr("may have 0 rings and has 0: no ring;"));
  EXPECT_EQ(refusal(tenants, set, ring_of(4, "", 4)), "");
  EXPECT_EQ(refusal(tenants, set, ring_of(4, "green", 4)),
            "ring 4: found tenant green, whom the switch will know after a restart; allowed: one "
            "that it was started with")
      << "a reload may name it";
  EXPECT_EQ(refusal(tenants, set.without(0), ring_of(4, "red", 4)), "")
      << "what is withdrawn counts no more";
}

TEST(Tenants, HaveSoMuchMemory) {
  const ring::RingSet none({});
  const ring::RingSet set({ring_of(1, "red", 1)});
  const auto with = [](std::uint32_t mib) {
    return std::vector<config::TenantConfig>{{.name = "red", .memory_mib = mib}};
  };
  EXPECT_THAT(refusal(Tenants(with(12), kMbufBytes, none), none, ring_of(1, "red", 1)),
              HasSubstr("ring 1: needs 12.0 MiB; tenant red may have 12 and has 0.0, held by no "
                        "ring; allowed: "))
      << "the slots are the little that is too much";
  EXPECT_EQ(refusal(Tenants(with(13), kMbufBytes, none), none, ring_of(1, "red", 1)), "");
  EXPECT_THAT(refusal(Tenants(with(24), kMbufBytes, set), set, ring_of(2, "red", 2)),
              HasSubstr("has 12.0, held by ring 1: 12.0;"));
  EXPECT_EQ(refusal(Tenants(with(25), kMbufBytes, set), set, ring_of(2, "red", 2)), "");
}

/// Otherwise one could use up what the switch can remember by rings that come and go.
TEST(Tenants, LeaveSoManyNeighbours) {
  const ring::RingSet set({ring_of(1, "red", 1), ring_of(2, "red", 2)});
  const auto with = [&](std::uint16_t neighbours) {
    return Tenants({{.name = "red", .neighbours = neighbours}, {.name = "blue"}}, kMbufBytes, set);
  };
  EXPECT_EQ(refusal(with(2), set, ring_of(3, "red", 3)),
            "ring 3: has 1 new neighbours; tenant red may leave 2 in the switch's memory and has "
            "left 2, those of withdrawn rings included; allowed: hosts in the order of an earlier "
            "ring, or configure more neighbours: for the tenant, or have them forgotten "
            "(docs/operating.md)");
  EXPECT_NE(refusal(with(2), set.without(0), ring_of(3, "red", 3)), "") << "withdrawn ones count";
  EXPECT_EQ(refusal(with(2), set.without(0), ring_of(3, "red", 1)), "") << "it is known";
  EXPECT_EQ(refusal(with(3), set, ring_of(3, "red", 3)), "");
  EXPECT_EQ(refusal(with(2), set, ring_of(3, "blue", 3)), "");
  ring::RingSpec three = ring_of(3, "red", 3);
  three.members.push_back({*wire::parse_ip("10.0.3.3"), {}});
  EXPECT_NE(refusal(with(4), set, three), "") << "three ranks have three neighbours";
  EXPECT_EQ(refusal(with(5), set, three), "");
  EXPECT_EQ(with(2).uses(set.without(0))[0].neighbours, 2u);
}

/// A tenant without a limit cannot use up what the switch can remember for all: 32767.
/// Of a ring of four ranks: rank 1 is this switch's, the others are another's.
TEST(Tenants, LeaveTheNeighboursOfThisSwitchOfATree) {
  ring::RingSpec leaf = ring_of(1, "red", 1);
  leaf.members.push_back({*wire::parse_ip("10.0.1.3"), {}});
  leaf.members.push_back({*wire::parse_ip("10.0.1.4"), {}});
  leaf.parent = {.port = 0, .name = "spine"};
  leaf.children = {{.ranks = {1, 1}, .port = {}, .name = {}}};
  const ring::RingSet none({});
  const Tenants tenants({{.name = "red", .neighbours = 1}}, kMbufBytes, none);
  EXPECT_THAT(refusal(tenants, none, leaf), HasSubstr("ring 1: has 2 new neighbours; tenant red"));
}

TEST(Tenants, WithoutALimitHaveAShareOfWhatTheSwitchRemembers) {
  using Limits = std::vector<std::optional<std::uint16_t>>;
  const auto shares_of = [](std::vector<config::TenantConfig> tenants) {
    const ring::RingSet none({});
    Limits shares;
    for (const TenantUse& use : Tenants(tenants, kMbufBytes, none).uses(none)) {
      shares.push_back(use.tenant.neighbours);
    }
    return shares;
  };
  EXPECT_EQ(shares_of({{.name = "red"}}), Limits{16383}) << "the other half is for no tenant's";
  EXPECT_EQ(shares_of({{.name = "red"}, {.name = "blue"}}), (Limits{10922, 10922}));
  EXPECT_EQ(shares_of({{.name = "red", .neighbours = 2767}, {.name = "blue"}}),
            (Limits{2767, 15000}));
  EXPECT_EQ(shares_of({{.name = "red", .neighbours = 0}}), Limits{0});
  EXPECT_EQ(shares_of({{.name = "red", .neighbours = 32767}}), Limits{32767});
  EXPECT_THAT(
      [&] {
        shares_of({{.name = "red", .neighbours = 32766}, {.name = "blue"}});
      },
      testing::ThrowsMessage<config::ConfigError>(
          HasSubstr("leave 1 for tenant blue, which has none")));
}

/// 514 rings of 60 members did so, within 40 s.
TEST(Tenants, OneCannotUseUpTheMemoryForAll) {
  const Tenants tenants({{.name = "red"}, {.name = "blue"}}, kMbufBytes, ring::RingSet({}));
  ring::RingSet set(std::vector<ring::RingSpec>{});
  std::uint32_t next = 0;
  const auto ring_of_new_hosts = [&next](const std::string& tenant) {
    ring::RingSpec ring{.id = 1, .window = 1, .max_message_bytes = 1024, .tenant = tenant};
    for (int member = 0; member < 250; ++member) {
      const std::array<std::uint8_t, 4> address{10, static_cast<std::uint8_t>(next >> 16U),
                                                static_cast<std::uint8_t>(next >> 8U),
                                                static_cast<std::uint8_t>(next)};
      ring.members.push_back({wire::IpAddress::from_v4(address.data()), std::nullopt});
      ++next;
    }
    return ring;
  };
  std::size_t rings = 0;
  for (; rings < 200; ++rings) {
    const ring::RingSpec ring = ring_of_new_hosts("red");
    if (!refusal(tenants, set, ring).empty()) {
      break;
    }
    set = set.with(ring).without(set.next_index());
  }
  EXPECT_EQ(rings, 10922U / 250U);
  EXPECT_EQ(refusal(tenants, set, ring_of_new_hosts("blue")), "");
  EXPECT_EQ(refusal(tenants, set, ring_of_new_hosts("")), "");
}

TEST(Tenants, ShareNoNeighbours) {
  const ring::RingSet set({ring_of(1, "red", 1), ring_of(2, "", 2)});
  const Tenants tenants({{.name = "red"}, {.name = "blue"}}, kMbufBytes, set);
  EXPECT_EQ(refusal(tenants, set, ring_of(3, "red", 1)), "");
  EXPECT_EQ(refusal(tenants, set, ring_of(3, "blue", 1)),
            "ring 3 of tenant blue: two of its neighbours are neighbours in ring 1, which is of "
            "tenant red, or in rings that share neighbours with it; allowed: neighbours in rings "
            "of one tenant");
  EXPECT_THAT(refusal(tenants, set, ring_of(3, "blue", 2)), HasSubstr("ring 2, which is of no"));
  EXPECT_THAT(refusal(tenants, set, ring_of(3, "", 1)), HasSubstr("ring 3 of no tenant: two"));
  ring::RingSpec reversed = ring_of(3, "blue", 1);
  std::swap(reversed.members[0], reversed.members[1]);
  EXPECT_NE(refusal(tenants, set, reversed), "");
  EXPECT_EQ(refusal(tenants, set.without(0), ring_of(3, "blue", 1)), "")
      << "hosts may go from one tenant to another";
}

/// Else it could tie another tenant's hosts to its own worker and its own limits.
TEST(Tenants, HaveRingsOfTheirOwnHosts) {
  const ring::RingSet none({});
  const Tenants tenants(
      {{.name = "red",
        .hosts = {*config::parse_block("10.0.1.0/24"), *config::parse_block("10.0.2.0/31")}},
       {.name = "blue"}},
      kMbufBytes, none);
  EXPECT_EQ(refusal(tenants, none, ring_of(1, "red", 1)), "");
  EXPECT_EQ(refusal(tenants, none, ring_of(1, "red", 2)),
            "ring 1: members[1].ip: found 10.0.2.2, which is no host of tenant red; allowed: an "
            "address in its hosts:, 10.0.1.0/24, 10.0.2.0/31");
  EXPECT_EQ(refusal(tenants, none, ring_of(1, "blue", 2)), "") << "without blocks, anywhere";
  EXPECT_EQ(refusal(tenants, none, ring_of(1, "", 2)), "") << "nobody's";
}

TEST(Tenants, AreCheckedAtTheStart) {
  const auto start = [](const std::vector<config::TenantConfig>& tenants,
                        const std::vector<ring::RingSpec>& rings) {
    return [=] { Tenants(tenants, kMbufBytes, ring::RingSet(rings)); };
  };
  const std::vector<ring::RingSpec> two{ring_of(1, "red", 1), ring_of(2, "red", 2)};
  EXPECT_THAT(start({{.name = "red", .rings = 1}}, two),
              ThrowsMessage<config::ConfigError>(
                  "tenants: tenant red has 2 rings under rings:; allowed: 1, its rings:"));
  EXPECT_THAT(start({{.name = "red", .memory_mib = 24}}, two),
              ThrowsMessage<config::ConfigError>(
                  "tenants: the rings of tenant red need 24.0 MiB: ring 1: 12.0, ring 2: 12.0; "
                  "allowed: 24, its memory_mib:"));
  EXPECT_THAT(start({{.name = "red"}}, {ring_of(1, "red", 1), ring_of(2, "", 1)}),
              ThrowsMessage<config::ConfigError>(HasSubstr("rings: ring 1 of tenant red: two")));
  start({{.name = "red", .rings = 2, .memory_mib = 25}}, two)();
}

TEST(Tenants, UseWhatTheirRingsTake) {
  const ring::RingSet set({ring_of(1, "red", 1), ring_of(2, "red", 2), ring_of(3, "", 3)});
  const auto uses = Tenants({{.name = "blue"}, {.name = "red"}}, kMbufBytes, set).uses(set);
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_EQ(uses[0].rings.size() + uses[0].bytes, 0U);
  EXPECT_THAT(uses[1].rings, ElementsAre(0, 1));
  EXPECT_NEAR(static_cast<double>(uses[1].bytes) / kMiB, 24, 0.5);
}

/// Two lcores: rings 1, 2 and 4 on the first one, 3 on the second; 2 and 4 are of the same hosts.
TEST(Tenants, ShareTheirRateByGroups) {
  const ring::RingSet set({ring_of(1, "red", 1), ring_of(2, "red", 2), ring_of(3, "red", 3),
                           ring_of(4, "red", 2), ring_of(5, "blue", 5)});
  Placement placement;
  placement.lcores.resize(2);
  placement.worker_of_ring = {0, 0, 1, 0, 1};
  const Tenants tenants({{.name = "blue"}, {.name = "red", .packets_per_second = 1000}}, kMbufBytes,
                        set);
  const auto shares = tenants.shares(set, placement, {});
  ASSERT_EQ(shares.size(), 2U);
  EXPECT_THAT(shares[0].rates, ElementsAre(0, 666));
  EXPECT_THAT(shares[1].rates, ElementsAre(0, 333));
  EXPECT_EQ(shares[0].tenants[set.ring_group_of(0)], 1);
  EXPECT_EQ(shares[0].tenants[set.ring_group_of(3)], 1);
  EXPECT_EQ(shares[0].tenants[set.ring_group_of(4)], stage::FairQueue::kNoTenant);
  EXPECT_EQ(shares[1].tenants[set.ring_group_of(4)], 0);
  const auto later = tenants.shares(set.without(2), placement, {});
  EXPECT_THAT(later[0].rates, ElementsAre(0, 1000));
  EXPECT_THAT(later[1].rates, ElementsAre(0, 0));
  placement.worker_of_ring = {0, 0, 1, 1, 1}; // the second one works for a ring of the pair too
  const auto parallel = tenants.shares(set, placement, {});
  EXPECT_THAT(parallel[0].rates, ElementsAre(0, 500));
  EXPECT_THAT(parallel[1].rates, ElementsAre(0, 500));
  EXPECT_EQ(parallel[1].tenants[set.ring_group_of(3)], 1);
  EXPECT_TRUE(Tenants({}, kMbufBytes, ring::RingSet({})).shares(set, placement, {}).empty());
}

/// The second lcore is the first one with a worker.
TEST(Tenants, HaveAPartOfTheirRateForRegions) {
  const ring::RingSet set({ring_of(1, "red", 1), ring_of(2, "red", 2)});
  Placement placement;
  placement.lcores.resize(3);
  placement.lcores[1].works = placement.lcores[2].works = true;
  placement.worker_of_ring = {2, 2};
  const Tenants tenants({{.name = "blue", .packets_per_second = 50},
                         {.name = "red", .packets_per_second = 900},
                         {.name = "free"}},
                        kMbufBytes, set);
  const auto shares = tenants.shares(set, placement, {"blue", "red", "free", ""});
  EXPECT_THAT(shares[0].rates, ElementsAre(0, 0, 0));
  EXPECT_THAT(shares[1].rates, ElementsAre(50, 300, 0));
  EXPECT_THAT(shares[2].rates, ElementsAre(0, 600, 0));
  EXPECT_THAT(tenants.shares(set, placement, {})[2].rates, ElementsAre(0, 900, 0));
  EXPECT_EQ(tenants.number_of("red"), 1);
  EXPECT_EQ(tenants.number_of(""), stage::FairQueue::kNoTenant);
}

config::PortConfig port_with(std::uint16_t descriptors) {
  config::PortConfig port;
  port.rx_descriptors = descriptors;
  return port;
}

/// The room before each worker of a switch with these lcores, of which all receive if only one
/// does.
std::vector<std::uint32_t> rooms(std::size_t rings, const std::vector<config::Role>& first,
                                 const std::vector<config::Role>& second,
                                 std::vector<config::TenantConfig> tenants = {},
                                 std::optional<config::RegionsConfig> regions = {}) {
  config::Config config;
  config.regions = std::move(regions);
  config.ports = {port_with(1024), port_with(512)};
  config.lcores.push_back({.id = 1, .roles = first});
  if (!second.empty()) {
    config.lcores.push_back({.id = 2, .roles = second});
  }
  config.tenants = std::move(tenants);
  for (std::uint32_t ring = 0; ring < rings; ++ring) {
    config.rings.push_back(ring_of(ring, "", ring));
  }
  std::vector<std::uint32_t> rooms;
  for (const auto& lcore : with_queues(config, place(config, ring::RingSet(config.rings))).lcores) {
    rooms.push_back(lcore.queue_room);
  }
  return rooms;
}

/// docs/architecture.md: twice the descriptors, or twice a hand-off ring of 4096.
TEST(Placement, HasRoomWhereRingsWaitForOneAnother) {
  using enum config::Role;
  EXPECT_THAT(rooms(1, {rx, worker, tx}, {}), ElementsAre(0));
  EXPECT_THAT(rooms(2, {rx, worker, tx}, {}), ElementsAre(2 * 1536));
  EXPECT_THAT(rooms(1, {rx, worker, tx}, {}, {{.name = "red", .packets_per_second = 1}}),
              ElementsAre(2 * 1536));
  EXPECT_THAT(rooms(1, {rx, worker, tx}, {}, {{.name = "red", .rings = 1}}), ElementsAre(0));
  EXPECT_THAT(rooms(2, {rx, tx}, {worker}), ElementsAre(0, 8192));
  const config::RegionsConfig one_region{.rooms = {.regions = 1}};
  EXPECT_THAT(rooms(0, {rx, worker, tx}, {}, {}, one_region), ElementsAre(0));
  EXPECT_THAT(rooms(1, {rx, worker, tx}, {}, {}, one_region), ElementsAre(2 * 1536));
  EXPECT_THAT(rooms(0, {rx, worker, tx}, {}, {}, config::RegionsConfig{.rooms = {.regions = 2}}),
              ElementsAre(2 * 1536));
}

} // namespace
} // namespace weir::control::tenants_test
