// SPDX-License-Identifier: BSD-3-Clause

/// What a server is asked about its NICs.

#include "server/asks.hpp"
#include "support/fake_server.hpp"

#include <gtest/gtest.h>

#include <gmock/gmock.h>
#include <string>

namespace weir::server_devices_test {
namespace {

using server::Rank;
using test::finding;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kNic = "/sys/bus/pci/devices/0000:17:00.0";

config::Config with_device(const std::string& device) {
  config::Config config;
  config.ports = {{.name = "p0", .device = device}};
  return config;
}

config::Config with_nic() {
  return with_device("0000:17:00.0,queues=1");
}

/// A NIC's files, as the kernel has them.
class Nic : public testing::Test {
 protected:
  Nic() {
    put("vendor", "0x8086\n");
    put("device", "0x1592\n");
    put("class", "0x020000\n");
  }

  void put(const std::string& name, const std::string& text) {
    machine_.file(kNic + ("/" + name), text);
  }

  void bind(const std::string& driver) {
    machine_.link(kNic + std::string("/driver"), "../../../../bus/pci/drivers/" + driver);
  }

  auto asked(std::string_view question) const { return machine_.ask(question, with_nic()); }

  test::FakeServer machine_;
};

TEST_F(Nic, IsThere) {
  EXPECT_THAT(asked("device"),
              ElementsAre(finding(Rank::fine, "p0: 0000:17:00.0 is there (8086:1592)")));
  EXPECT_THAT(machine_.ask("device", with_device("17:00.0")),
              ElementsAre(finding(Rank::fine, "is there")));
  EXPECT_THAT(machine_.ask("device", with_device("pci:0000:17:00.0")),
              ElementsAre(finding(Rank::fine, "is there")));
}

TEST_F(Nic, IsNotThere) {
  const auto found = machine_.ask("device", with_device("0000:17:00.1"));
  EXPECT_THAT(found, ElementsAre(finding(Rank::wrong, "0000:17:00.1 is not there")));
  EXPECT_THAT(found[0].mend, HasSubstr("lspci -D"));
  EXPECT_THAT(machine_.ask("driver", with_device("0000:17:00.1")), IsEmpty());
}

/// The first configuration of an installation has this option.
TEST_F(Nic, IsHiddenFromEal) {
  auto config = with_nic();
  config.eal_options = {"--no-huge", "--no-pci"};
  EXPECT_THAT(machine_.ask("device", config),
              ElementsAre(finding(Rank::fine, "is there"), finding(Rank::wrong, "--no-pci")));
  config.ports[0].device = "net_tap0";
  EXPECT_THAT(machine_.ask("device", config), IsEmpty());
}

TEST_F(Nic, IsSomethingElse) {
  put("class", "0x010802\n");
  EXPECT_THAT(asked("device"),
              ElementsAre(finding(Rank::warning, "no network controller, by its class 010802")));
}

TEST_F(Nic, HasVfio) {
  bind("vfio-pci");
  EXPECT_THAT(asked("driver"), ElementsAre(finding(Rank::fine, "0000:17:00.0 has vfio-pci")));
}

TEST_F(Nic, HasItsKernelDriverStill) {
  bind("ice");
  machine_.folder(kNic + std::string("/net/ens1f0"));
  const auto found = asked("driver");
  EXPECT_THAT(found, ElementsAre(finding(
                         Rank::wrong,
                         "has ice; DPDK needs vfio-pci; this server loses its interface ens1f0")));
  EXPECT_EQ(found[0].mend, "modprobe vfio-pci && driverctl set-override 0000:17:00.0 vfio-pci");
}

TEST_F(Nic, OfVirtioHasItsInterfaceBelowAnotherDevice) {
  bind("virtio-pci");
  machine_.folder(kNic + std::string("/virtio2/net/eth0"));
  EXPECT_THAT(asked("driver"), ElementsAre(finding(Rank::wrong, "loses its interface eth0")));
}

TEST_F(Nic, HasNoDriver) {
  const auto found = asked("driver");
  EXPECT_THAT(found, ElementsAre(finding(Rank::wrong, "has no driver")));
  EXPECT_THAT(found[0].mend, HasSubstr("driverctl set-override 0000:17:00.0"));
}

TEST_F(Nic, HasUio) {
  bind("uio_pci_generic");
  EXPECT_THAT(asked("driver"),
              ElementsAre(finding(Rank::warning, "has uio_pci_generic, which needs root")));
}

class Mellanox : public Nic {
 protected:
  Mellanox() {
    put("vendor", "0x15b3\n");
    put("device", "0x101d\n");
  }
};

TEST_F(Mellanox, StaysWithItsKernelDriver) {
  bind("mlx5_core");
  put("infiniband/mlx5_0/fw_ver", "22.35.1012\n");
  EXPECT_THAT(asked("driver"), ElementsAre(finding(Rank::fine, "stays with mlx5_core, as mlx5_0")));
}

TEST_F(Mellanox, IsTakenAway) {
  bind("vfio-pci");
  const auto found = asked("driver");
  EXPECT_THAT(found, ElementsAre(finding(Rank::wrong,
                                         "has vfio-pci; DPDK reaches this NIC through mlx5_core")));
  EXPECT_EQ(found[0].mend, "driverctl unset-override 0000:17:00.0");
}

TEST_F(Mellanox, LacksItsModule) {
  bind("mlx5_core");
  const auto found = asked("driver");
  EXPECT_THAT(found, ElementsAre(finding(Rank::wrong, "mlx5_ib is not loaded")));
  EXPECT_THAT(found[0].mend, HasSubstr("modprobe -a mlx5_ib"));
}

TEST_F(Nic, FillsItsSlot) {
  put("max_link_width", "16\n");
  put("current_link_width", "16\n");
  put("max_link_speed", "16.0 GT/s PCIe\n");
  put("current_link_speed", "16.0 GT/s PCIe\n");
  EXPECT_THAT(asked("slot"), ElementsAre(finding(Rank::fine, "16 lanes at 16.0 GT/s PCIe")));
  put("current_link_width", "8\n");
  EXPECT_THAT(asked("slot"), ElementsAre(finding(
                                 Rank::warning, "8 lanes at 16.0 GT/s PCIe; the NIC can have 16")));
  put("current_link_width", "16\n");
  put("current_link_speed", "8.0 GT/s PCIe\n");
  EXPECT_THAT(asked("slot"),
              ElementsAre(finding(Rank::warning,
                                  "16 lanes at 8.0 GT/s PCIe; the NIC can have 16 at 16.0")));
}

TEST_F(Nic, OfAVirtualMachineHasNoSlot) {
  EXPECT_THAT(asked("slot"), IsEmpty());
  put("max_link_width", "0\n");
  put("current_link_width", "0\n");
  EXPECT_THAT(asked("slot"), IsEmpty());
}

/// A NIC that vfio-pci has, in IOMMU group 26.
class VfioNic : public Nic {
 protected:
  VfioNic() {
    bind("vfio-pci");
    machine_.folder("/sys/class/iommu/dmar0");
    machine_.link(kNic + std::string("/iommu_group"), "../../../../../kernel/iommu_groups/26");
    machine_.folder("/sys/kernel/iommu_groups/26/devices/0000:17:00.0");
    machine_.file("/dev/vfio/26", "");
  }

  /// Another device of the group.
  void neighbour(const std::string& driver) {
    machine_.folder("/sys/kernel/iommu_groups/26/devices/0000:17:00.1");
    machine_.link("/sys/bus/pci/devices/0000:17:00.1/driver",
                  "../../../../bus/pci/drivers/" + driver);
  }
};

TEST_F(VfioNic, IsGuardedByTheIommu) {
  // The link of the real tree leads there from the device's real folder.
  machine_.without(kNic + std::string("/iommu_group"));
  machine_.link(kNic + std::string("/iommu_group"), machine_.path() / "sys/kernel/iommu_groups/26");
  EXPECT_THAT(asked("IOMMU"), ElementsAre(finding(Rank::fine, "on"),
                                          finding(Rank::fine, "this user may open /dev/vfio/26")));
  neighbour("pcieport");
  EXPECT_THAT(asked("IOMMU"),
              ElementsAre(finding(Rank::fine, "on"), finding(Rank::fine, "may open")));
  neighbour("ice");
  const auto found = asked("IOMMU");
  EXPECT_THAT(found, ElementsAre(finding(Rank::fine, "on"),
                                 finding(Rank::wrong,
                                         "its IOMMU group 26 has 0000:17:00.1 too, with ice")));
  EXPECT_EQ(found[1].mend, "driverctl set-override 0000:17:00.1 vfio-pci");
}

TEST_F(VfioNic, LacksItsGroup) {
  machine_.without("/dev/vfio/26");
  EXPECT_THAT(asked("IOMMU"), ElementsAre(finding(Rank::fine, "on"),
                                          finding(Rank::wrong, "/dev/vfio/26 is not there")));
  machine_.without(kNic + std::string("/iommu_group"));
  EXPECT_THAT(asked("IOMMU"),
              ElementsAre(finding(Rank::fine, "on"), finding(Rank::wrong, "is in no IOMMU group")));
}

TEST_F(VfioNic, MayNotBeOpened) {
  server::Facts facts = machine_.facts(with_nic());
  facts.devices[0].group.access = server::Access::denied;
  const auto config = with_nic();
  const auto found = server::ask_iommu({config, facts});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[1], finding(Rank::wrong, "this user may not open /dev/vfio/26"));
  EXPECT_THAT(found[1].mend, HasSubstr("udevadm trigger"));
}

TEST_F(VfioNic, NeedsTheIommu) {
  machine_.without("/sys/class/iommu");
  machine_.file("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\n");
  auto found = asked("IOMMU");
  EXPECT_THAT(found, ElementsAre(finding(Rank::wrong, "off, and vfio-pci needs it")));
  EXPECT_THAT(found[0].mend, HasSubstr("intel_iommu=on"));
  machine_.file("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: AuthenticAMD\n");
  EXPECT_THAT(asked("IOMMU")[0].mend, HasSubstr("AMD-Vi"));
  machine_.file("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y\n");
  EXPECT_THAT(asked("IOMMU"), ElementsAre(finding(Rank::warning, "unsafe mode")));
}

TEST_F(Mellanox, NeedsNoIommu) {
  bind("mlx5_core");
  EXPECT_THAT(asked("IOMMU"), IsEmpty());
}

TEST_F(Mellanox, HasOldFirmware) {
  bind("mlx5_core");
  put("infiniband/mlx5_0/fw_ver", "22.35.1012\n");
  EXPECT_THAT(asked("firmware"), ElementsAre(finding(Rank::fine, "22.35.1012")));
  put("infiniband/mlx5_0/fw_ver", "22.27.0089\n");
  EXPECT_THAT(asked("firmware"),
              ElementsAre(finding(Rank::warning, "DPDK wants 22.27.0090 or later")));
  put("infiniband/mlx5_0/fw_ver", "99.1.1\n");
  EXPECT_THAT(asked("firmware"), ElementsAre(finding(Rank::unknown, "99.1.1")));
  put("infiniband/mlx5_0/fw_ver", "");
  EXPECT_THAT(asked("firmware"), ElementsAre(finding(Rank::unknown, "no firmware is told")));
}

TEST_F(Nic, OfIceLoadsAPackage) {
  const auto safe = with_device("0000:17:00.0,safe-mode-support=1");
  EXPECT_THAT(asked("firmware"), ElementsAre(finding(Rank::wrong, "no ice.pkg")));
  EXPECT_THAT(machine_.ask("firmware", safe),
              ElementsAre(finding(Rank::warning, "one queue without it")));
  machine_.file("/lib/firmware/intel/ice/ddp/ice.pkg", "");
  EXPECT_THAT(asked("firmware"),
              ElementsAre(finding(Rank::fine, "/lib/firmware/intel/ice/ddp/ice.pkg")));
  machine_.file("/lib/firmware/updates/intel/ice/ddp/ice.pkg", "");
  EXPECT_THAT(asked("firmware"), ElementsAre(finding(Rank::fine, "/lib/firmware/updates")));
}

TEST_F(Nic, OfOtherMakersDoesNotTell) {
  put("device", "0x10fb\n");
  EXPECT_THAT(asked("firmware"), ElementsAre(finding(Rank::unknown, "not told before the start")));
}

} // namespace
} // namespace weir::server_devices_test
