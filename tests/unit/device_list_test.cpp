// SPDX-License-Identifier: BSD-3-Clause

/// RoCE NICs are read from a folder that looks like the kernel's sysfs (Linux:
/// Documentation/ABI/stable/sysfs-class-infiniband). The lines of rxe0 are a soft-RoCE guest's.

#include "host/transport/device_list.hpp"
#include "support/temporary_folder.hpp"
#include "weir/weir.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace weir::host::device_list_test {
namespace {

namespace fs = std::filesystem;

struct Gid {
  std::string address;
  std::string type; // "": no entry
  std::string interface;
};

const std::string kLinkLocal = "fe80:0000:0000:0000:5054:00ff:fe00:0001";
const std::string kIpv6 = "fd77:0000:0000:0000:0000:0000:0000:0001";
const std::string kIpv4 = "0000:0000:0000:0000:0000:ffff:0a4d:0001"; // 10.77.0.1
const std::string kNothing = "0000:0000:0000:0000:0000:0000:0000:0000";

class DeviceList : public testing::Test {
 protected:
  void write(const fs::path& file, const std::string& line) const {
    const fs::path path = folder_.path() / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << line << '\n';
  }

  void add_nic(const std::string& name, const std::string& rate, const std::string& state,
               const std::vector<Gid>& gids, const std::string& link_layer = "Ethernet") const {
    const fs::path port = fs::path("class/infiniband") / name / "ports/1";
    write(port / "link_layer", link_layer);
    write(port / "rate", rate);
    write(port / "state", state);
    for (std::size_t i = 0; i < gids.size(); ++i) {
      const std::string number = std::to_string(i);
      write(port / "gids" / number, gids[i].address);
      if (!gids[i].type.empty()) { // the kernel's file is there, and reading it fails
        write(port / "gid_attrs/types" / number, gids[i].type);
        write(port / "gid_attrs/ndevs" / number, gids[i].interface);
      }
    }
  }

  /// On a PCI bus.
  void plug_in(const std::string& nic, const std::string& function, const std::string& node) const {
    const fs::path device = fs::path("devices/pci0000:3a/0000:3a:00.0") / function;
    write(device / "numa_node", node);
    fs::create_directories(folder_.path() / "bus/pci");
    fs::create_directory_symlink(folder_.path() / "bus/pci", folder_.path() / device / "subsystem");
    fs::create_directory_symlink(folder_.path() / device,
                                 folder_.path() / "class/infiniband" / nic / "device");
  }

  std::vector<DeviceInfo> nics() const {
    std::vector<DeviceInfo> all = list_devices(folder_.path());
    std::erase_if(all,
                  [](const DeviceInfo& each) { return each.transport == TransportKind::software; });
    return all;
  }

  const test::TemporaryFolder folder_{"weir-sysfs"};
};

TEST_F(DeviceList, TellsOfASoftRoceDevice) {
  add_nic("rxe0", "2.5 Gb/sec (1X SDR)", "4: ACTIVE",
          {{kLinkLocal, "RoCE v2", "eth7"}, {kIpv4, "RoCE v2", "eth7"}, {kNothing, "", ""}});
  const std::vector<DeviceInfo> found = nics();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, "rxe0");
  EXPECT_EQ(found[0].interface, "eth7");
  EXPECT_EQ(found[0].ip, "10.77.0.1");
  EXPECT_EQ(found[0].gid_index, 1);
  EXPECT_EQ(found[0].megabits, 2500u);
  EXPECT_TRUE(found[0].is_up);
  EXPECT_EQ(found[0].pci_path, "");
  EXPECT_EQ(found[0].numa_node, std::nullopt);
}

TEST_F(DeviceList, TellsWhereANicIsPluggedIn) {
  add_nic("mlx5_1", "100 Gb/sec (4X EDR)", "1: DOWN",
          {{kLinkLocal, "IB/RoCE v1", "eth7"},
           {kLinkLocal, "RoCE v2", "eth7"},
           {kIpv4, "IB/RoCE v1", "eth7"},
           {kIpv4, "RoCE v2", "eth7"}});
  plug_in("mlx5_1", "0000:3b:00.1", "1");
  const std::vector<DeviceInfo> found = nics();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].pci_path,
            fs::canonical(folder_.path()) / "devices/pci0000:3a/0000:3a:00.0/0000:3b:00.1");
  EXPECT_EQ(found[0].numa_node, 1u);
  EXPECT_EQ(found[0].megabits, 100'000u);
  EXPECT_EQ(found[0].gid_index, 3);
  EXPECT_FALSE(found[0].is_up);
}

TEST_F(DeviceList, TakesAnIpv6EntryWhereThereIsNoIpv4) {
  add_nic("a", "25 Gb/sec (1X EDR)", "4: ACTIVE",
          {{kLinkLocal, "RoCE v2", "eth7"}, {kIpv6, "RoCE v2", "eth7"}});
  add_nic("b", "25 Gb/sec (1X EDR)", "4: ACTIVE", {{kLinkLocal, "RoCE v2", "eth7"}});
  plug_in("a", "0000:3b:00.0", "-1");
  const std::vector<DeviceInfo> found = nics();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].gid_index, 1);
  EXPECT_EQ(found[0].ip, "fd77::1");
  EXPECT_EQ(found[0].numa_node, std::nullopt) << "the file says -1";
  EXPECT_EQ(found[1].gid_index, std::nullopt);
  EXPECT_EQ(found[1].ip, "");
}

TEST_F(DeviceList, LeavesOutInfiniBandAndWhatIsNotThere) {
  EXPECT_TRUE(nics().empty()) << "no such folder";
  add_nic("mlx5_0", "200 Gb/sec (4X HDR)", "4: ACTIVE", {{kLinkLocal, "IB/RoCE v1", ""}},
          "InfiniBand");
  EXPECT_TRUE(nics().empty());
}

TEST_F(DeviceList, ComesInTheStepsOfTheCallersStruct) {
  std::size_t count = 0;
  ASSERT_EQ(weir_list_devices(nullptr, 0, &count), WEIR_OK);
  EXPECT_EQ(count, list_devices().size());
  constexpr std::size_t kNewer = sizeof(weir_device) + 32; // of a program with a newer header
  std::vector<std::uint8_t> memory(kNewer * (count + 1), 0xaa);
  auto* const first = reinterpret_cast<weir_device*>(memory.data());
  first->size = kNewer;
  ASSERT_EQ(weir_list_devices(first, count + 1, &count), WEIR_OK);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& device = *reinterpret_cast<weir_device*>(memory.data() + i * kNewer);
    EXPECT_EQ(device.size, kNewer);
    EXPECT_STRNE(device.name, "");
    EXPECT_STRNE(device.name, "lo");
    EXPECT_EQ(memory[(i + 1) * kNewer - 1], 0) << "what this library does not know";
  }
  EXPECT_EQ(memory.back(), 0xaa) << "behind the last";

  weir_device forgotten{};
  EXPECT_EQ(weir_list_devices(&forgotten, 1, &count), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_list_devices(nullptr, 1, &count), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_list_devices(nullptr, 0, nullptr), WEIR_INVALID_ARGUMENT);
}

} // namespace
} // namespace weir::host::device_list_test
