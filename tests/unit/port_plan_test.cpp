// SPDX-License-Identifier: BSD-3-Clause

/// Which ports a reload opens and closes, where they get their places, and what does not fit.

#include "control/kernel_interface.hpp"
#include "control/memory.hpp"
#include "control/port_plan.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace weir::control::port_plan_test {
namespace {

using config::Config;
using config::PortConfig;

PortConfig port(std::string_view name, std::string_view more = "") {
  const std::string text =
      fmt::format("ports: [{{ name: {}, device: 'd_{},x=1'{} }}]\n", name, name, more);
  return config::parse_config(text, "f.yaml").ports[0];
}

std::vector<PortConfig> ports(const std::vector<std::string_view>& names) {
  std::vector<PortConfig> ports;
  for (const std::string_view name : names) {
    ports.push_back(name.empty() ? PortConfig{} : port(name));
  }
  return ports;
}

Config started_with(const std::vector<std::string_view>& names, std::uint16_t spare) {
  Config config;
  config.ports = ports(names);
  config.spare.ports = spare;
  return config;
}

/// A switch that was started with ports a, b and c and may have two more, and now has these.
PortPlan planned(const std::vector<std::string_view>& running,
                 const std::vector<PortConfig>& wanted) {
  return plan_ports(started_with(running, 2), wanted, PortBudget(started_with({"a", "b", "c"}, 2)));
}

std::string names_of(const PortPlan& plan) {
  std::string names;
  for (const PortConfig& place : plan.places) {
    names += place.name.empty() ? "-" : place.name;
  }
  return names;
}

std::string steps_of(const PortPlan& plan) {
  return fmt::format("{} opened [{}] closed [{}]", names_of(plan), fmt::join(plan.opened, " "),
                     fmt::join(plan.closed, " "));
}

TEST(PortPlan, PortsAreFoundAgainByNameAndKeepTheirPlaces) {
  EXPECT_EQ(steps_of(planned({"a", "b", "c"}, ports({"c", "a", "b"}))), "abc opened [] closed []");
  EXPECT_EQ(steps_of(planned({"a", "b", "c"}, ports({"a", "c"}))), "a-c opened [] closed [1]");
  EXPECT_EQ(steps_of(planned({"a", "b", "c"}, ports({"d", "a", "b", "c", "e"}))),
            "abcde opened [3 4] closed []");
}

TEST(PortPlan, OneThatComesTakesNotThePlaceOfOneThatGoes) {
  EXPECT_EQ(steps_of(planned({"a", "b", "c"}, ports({"a", "c", "d"}))),
            "a-cd opened [3] closed [1]");
  EXPECT_EQ(steps_of(planned({"a", "", "c", "d"}, ports({"a", "c", "d", "e"}))),
            "aecd opened [1] closed []")
      << "but one that is free";
}

TEST(PortPlan, WithoutRoomPortsStayAsTheyAre) {
  const Config config = started_with({"a", "b"}, 0);
  EXPECT_EQ(steps_of(plan_ports(config, ports({"a", "c"}), PortBudget(config))),
            "ab opened [] closed []");
}

std::string refusal(const std::vector<std::string_view>& running,
                    const std::vector<PortConfig>& wanted) {
  try {
    planned(running, wanted);
    return "it fits";
  } catch (const PortError& error) {
    return error.what();
  }
}

TEST(PortPlan, SaysWhatDoesNotFit) {
  const std::vector<PortConfig> six = ports({"a", "b", "c", "d", "e", "f"});
  EXPECT_EQ(refusal({"a", "b", "c"}, six),
            "port f: found 6 ports, those that go included; allowed: 5 at once, until a restart "
            "with a larger spare.ports");
  EXPECT_EQ(refusal({"a", "b", "c", "d"}, ports({"c", "d", "e", "f"})),
            "port f: found 6 ports, those that go included; allowed: 5 at once, until a restart "
            "with a larger spare.ports");
  EXPECT_EQ(refusal({"a", "b", "c"}, {port("a"), port("d", ", mtu: 1501")}),
            "port d: mtu: found 1501; allowed: up to 1500, the longest at the start, until a "
            "restart");
  EXPECT_EQ(refusal({"a", "b", "c"}, {port("a"), port("d", ", rx_queues: 2")}), "it fits");
  const std::uint64_t room = 2 * frames_queued_at({});
  const PortConfig greedy = port("d", ", rx_queues: 16, rx_descriptors: 2048");
  EXPECT_EQ(refusal({"a", "b", "c"}, {port("a"), port("b"), port("c"), greedy}),
            fmt::format("port d: found queues for {} frames; allowed: {}, those of spare.ports "
                        "that are left: fewer rx_queues, rx_descriptors or tx_descriptors, or a "
                        "restart",
                        frames_queued_at(greedy), room));
}

/// The device is free only when the port has gone.
TEST(PortPlan, ADeviceIsOnePortsOnly) {
  PortConfig other = port("d");
  other.device = "d_b,y=2";
  EXPECT_EQ(refusal({"a", "b", "c"}, {port("a"), port("c"), other}),
            "port d: device: found d_b, which port b has; allowed: another device, or a reload "
            "without that port first");
}

PortConfig af_xdp_port(std::string_view name) {
  PortConfig made = port(name);
  made.device = fmt::format("net_af_xdp_{},iface=eth0", name);
  return made;
}

/// DPDK 22.11's driver has rings of 2048 frames to receive into, and as many for those that it has
/// sent, besides one of rx_descriptors for those that it sends.
TEST(PortPlan, AnAfXdpPortHasTheFramesOfItsDriver) {
  const std::uint64_t backlogs = frames_queued_at(port("a")) - (1024 + 2 * 1024);
  EXPECT_EQ(frames_queued_at(af_xdp_port("a")), 2 * 2048 + 1024 + backlogs);
  PortConfig two = af_xdp_port("a");
  two.rx_queues = 2;
  two.rx_descriptors = 512;
  EXPECT_EQ(frames_queued_at(two), 2 * (2 * 2048 + 512) + backlogs);
}

TEST(PortPlan, AnAfXdpPortNeitherComesNorGoes) {
  const auto why = [](std::string_view what) {
    return fmt::format("port x: device net_af_xdp_x would {} by a reload; allowed: a restart, for "
                       "its driver does not give back the buffers of a port that closes",
                       what);
  };
  const PortConfig x = af_xdp_port("x");
  EXPECT_EQ(refusal({"a"}, {port("a"), x}), why("come"));
  Config running = started_with({"a"}, 2);
  running.ports.push_back(x);
  const PortBudget budget(running);
  EXPECT_EQ(steps_of(plan_ports(running, {port("a"), x}, budget)), "ax opened [] closed []");
  try {
    plan_ports(running, ports({"a", "b"}), budget);
    ADD_FAILURE() << "it went";
  } catch (const PortError& error) {
    EXPECT_EQ(error.what(), why("go"));
  }
}

TEST(PortPlan, AMemberThatIsNotTiedMayBeBehindIt) {
  ring::RingSpec ring{.id = 7,
                      .mtu = 4096,
                      .members = {{.ip = *wire::parse_ip("10.0.0.1"), .port = {}},
                                  {.ip = *wire::parse_ip("10.0.0.2"), .port = 1}}};
  PortConfig small = port("d");
  // UDP 8, BTH 12, RETH 16, immediate 4, ICRC 4, IPv4 20 (IBTA A17.3.1)
  try {
    check_mtu(small, ring);
    ADD_FAILURE() << "4160 bytes fit into 1500";
  } catch (const PortError& error) {
    EXPECT_STREQ(error.what(), "port d: mtu: found 1500; allowed: at least 4160, for ring 7's "
                               "members may be behind any port");
  }
  small.mtu = 4160;
  EXPECT_NO_THROW(check_mtu(small, ring));
  small.mtu = 1500;
  ring.members[0].port = 0;
  EXPECT_NO_THROW(check_mtu(small, ring));
}

TEST(PortPlan, AMemberOfARegionThatIsNotTiedMayBeBehindIt) {
  region::RegionSpec region{.id = 7, .mtu = 4096, .members = {}};
  region.members = {{.ip = *wire::parse_ip("10.0.0.1"), .port = 1},
                    {.ip = *wire::parse_ip("10.0.0.2"), .port = {}}};
  PortConfig small = port("d");
  try {
    check_mtu(small, region);
    ADD_FAILURE() << "4160 bytes fit into 1500";
  } catch (const PortError& error) {
    EXPECT_STREQ(error.what(), "port d: mtu: found 1500; allowed: at least 4160, for region 7's "
                               "members may be behind any port; or `withdraw region 7`");
  }
  region.members[1].port = 0;
  EXPECT_NO_THROW(check_mtu(small, region));
}

/// RTE_ETH_SPEED_NUM_NONE and _UNKNOWN of virtio's driver and others (rte_ethdev.h).
TEST(PortLink, HasASpeedOrItIsUnknown) {
  EXPECT_EQ("up" + speed_text(100'000), "up 100000 Mbit/s");
  EXPECT_EQ("up" + speed_text(0), "up, speed unknown");
  EXPECT_EQ("up" + speed_text(4'294'967'295), "up, speed unknown");
}

} // namespace
} // namespace weir::control::port_plan_test
