// SPDX-License-Identifier: BSD-3-Clause

/// What the switch knows of DPDK's drivers by name.

#include "ethdev/drivers.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace weir::ethdev::drivers_test {
namespace {

struct Row {
  std::string_view what; // devargs, or a driver's name
  std::string_view driver;
};

TEST(Drivers, AreFoundByTheirNamesAndByDevargs) {
  const std::vector<Row> rows{
      {"net_af_packet0,iface=eth0", "net_af_packet"},
      {"net_af_xdp_a,iface=eth0", "net_af_xdp"},
      {"net_memif", "net_memif"},
      {"net_memif1,role=server,socket=/run/a", "net_memif"},
      {"net_pcap0,rx_iface=a", "net_pcap"},
      {"net_tap", "net_tap"},
      {"net_vhost0,iface=/run/a", "net_vhost"},
      {"net_virtio", "net_virtio"},
      {"net_virtio_user0,path=/run/a", "net_virtio_user"},
      {"mlx5_pci", ""},
      {"0000:3b:00.0", ""},
      {"", ""},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(driver_of(row.what).name, row.driver) << row.what;
  }
}

TEST(Drivers, ADriverWithoutARowHasNoQuirk) {
  const Driver& driver = driver_of("mlx5_pci");
  EXPECT_EQ(driver.tx_queues, TxQueues::any);
  EXPECT_EQ(driver.mtu_limit, MtuLimit::held);
  EXPECT_EQ(driver.buffers, Buffers::given_back);
  EXPECT_FALSE(driver.is_on_interface);
  EXPECT_TRUE(driver.socket.argument.empty());
  EXPECT_TRUE(driver.needs.empty());
}

TEST(Drivers, QueuesOfThoseThatCareAboutTheirNumber) {
  EXPECT_EQ(driver_of("net_tap").tx_queues, TxQueues::as_many_as_rx);
  EXPECT_EQ(driver_of("net_virtio").tx_queues, TxQueues::one);
  EXPECT_EQ(driver_of("net_memif").tx_queues, TxQueues::any);
}

bool listens(std::string_view devargs) {
  const DriverSocket& socket = driver_of(devargs).socket;
  return socket.listens != nullptr && socket.listens(devargs);
}

TEST(Drivers, WhoListensOnASocket) {
  EXPECT_TRUE(listens("net_memif0,role=server,socket=/run/a"));
  EXPECT_TRUE(listens("net_memif0,role=master,socket=/run/a")) << "its name before DPDK 20.11";
  EXPECT_FALSE(listens("net_memif0,role=client,socket=/run/a"));
  EXPECT_FALSE(listens("net_memif0,socket=/run/a")) << "a client, if nothing is said";
  EXPECT_TRUE(listens("net_vhost0,iface=/run/a"));
  EXPECT_TRUE(listens("net_vhost0,iface=/run/a,client=0"));
  EXPECT_FALSE(listens("net_vhost0,iface=/run/a,client=1"));
  EXPECT_FALSE(listens("net_virtio_user0,path=/run/a"));
  EXPECT_FALSE(listens("net_tap0,iface=a"));
}

bool connects_once(std::string_view devargs) {
  const DriverSocket& socket = driver_of(devargs).socket;
  return socket.connects_once != nullptr && socket.connects_once(devargs);
}

TEST(Drivers, WhoLooksForItsOtherEndAtItsStartAlone) {
  EXPECT_TRUE(connects_once("net_memif0,role=client,socket=/run/a"));
  EXPECT_TRUE(connects_once("net_memif0,socket=/run/a"));
  EXPECT_FALSE(connects_once("net_memif0,role=server,socket=/run/a"));
  EXPECT_FALSE(connects_once("net_vhost0,iface=/run/a,client=1")) << "it tries again by itself";
  EXPECT_FALSE(connects_once("net_tap0,iface=a"));
}

TEST(Drivers, WhoseSocketMayHaveNoFile) {
  const auto abstract = [](std::string_view devargs) {
    return is_abstract(driver_of(devargs).socket, devargs);
  };
  EXPECT_TRUE(abstract("net_memif0,socket=/run/a"));
  EXPECT_TRUE(abstract("net_memif0,socket=/run/a,socket-abstract=yes"));
  EXPECT_FALSE(abstract("net_memif0,socket=/run/a,socket-abstract=no"));
  EXPECT_FALSE(abstract("net_vhost0,iface=/run/a"));
}

TEST(Devargs, ArgumentsAreFoundByTheirWholeNames) {
  constexpr std::string_view devargs = "net_memif0,id=1,socket=/run/a,socket-abstract=no";
  EXPECT_EQ(argument_of(devargs, "socket"), "/run/a");
  EXPECT_EQ(argument_of(devargs, "socket-abstract"), "no");
  EXPECT_EQ(argument_of(devargs, "id"), "1");
  EXPECT_EQ(argument_of(devargs, "sock"), "");
  EXPECT_EQ(argument_of("", "id"), "");
}

} // namespace
} // namespace weir::ethdev::drivers_test
