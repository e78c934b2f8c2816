// SPDX-License-Identifier: BSD-3-Clause
#include "host/transport/device_list.hpp"

#include "host/base/host_addresses.hpp"
#include "host/base/stream.hpp"
#include "wire/address.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <map>
#include <net/if.h>
#include <net/if_arp.h>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace weir::host {
namespace {

namespace fs = std::filesystem;

/// The first line of one of sysfs's files; "" where there is none.
std::string line_of(const fs::path& file) {
  std::string line;
  std::ifstream stream(file);
  std::getline(stream, line);
  return line;
}

template <typename Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} ? std::optional(number) : std::nullopt;
}

/// The PCI function that the device is or, as virtio's are, is below of.
std::string pci_path_of(const fs::path& device) {
  std::error_code error;
  for (fs::path folder = fs::canonical(device, error); !error && folder.has_relative_path();
       folder = folder.parent_path()) {
    if (fs::canonical(folder / "subsystem", error).filename() == "pci") {
      return folder.string();
    }
    error.clear();
  }
  return {};
}

void set_place(DeviceInfo& info, const fs::path& device) {
  info.pci_path = pci_path_of(device);
  if (!info.pci_path.empty()) {
    // -1 in the file: the machine has one node, or its firmware does not say.
    info.numa_node = number_in<unsigned>(line_of(fs::path(info.pci_path) / "numa_node"));
  }
}

/// What only the kernel's calls tell: sysfs may be of another network namespace.
class NetDevices {
 public:
  NetDevices() : socket_([] { return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0); }) {}

  bool is_ethernet(const std::string& name) const {
    ifreq request = request_for(name);
    return ask(SIOCGIFHWADDR, request) && request.ifr_hwaddr.sa_family == ARPHRD_ETHER;
  }

  std::string mac_of(const std::string& name) const {
    ifreq request = request_for(name);
    wire::MacAddress mac;
    if (!ask(SIOCGIFHWADDR, request)) {
      return {};
    }
    std::copy_n(request.ifr_hwaddr.sa_data, mac.bytes.size(), mac.bytes.begin());
    return wire::to_string(mac);
  }

  bool is_up(const std::string& name) const {
    ifreq request = request_for(name);
    constexpr int kBoth = IFF_UP | IFF_RUNNING;
    return ask(SIOCGIFFLAGS, request) && (request.ifr_flags & kBoth) == kBoth;
  }

  std::uint32_t mtu_of(const std::string& name) const {
    ifreq request = request_for(name);
    return ask(SIOCGIFMTU, request) ? static_cast<std::uint32_t>(request.ifr_mtu) : 0;
  }

  std::uint64_t megabits_of(const std::string& name) const {
    constexpr std::uint32_t unknown = UINT32_MAX;
    ifreq request = request_for(name);
    ethtool_cmd settings{};
    settings.cmd = ETHTOOL_GSET;
    request.ifr_data = reinterpret_cast<char*>(&settings);
    const std::uint32_t speed = ask(SIOCETHTOOL, request) ? ethtool_cmd_speed(&settings) : 0;
    return speed == unknown ? 0 : speed;
  }

  /// Whether sysfs speaks of the interface that has this name here.
  bool is_that_of(const fs::path& sysfs, const std::string& name) const {
    const auto index = number_in<unsigned>(line_of(sysfs / "class/net" / name / "ifindex"));
    return index == if_nametoindex(name.c_str()) &&
           line_of(sysfs / "class/net" / name / "address") == mac_of(name);
  }

 private:
  static ifreq request_for(const std::string& name) {
    ifreq request{};
    name.copy(request.ifr_name, IFNAMSIZ - 1);
    return request;
  }

  bool ask(unsigned long what, ifreq& request) const {
    return ioctl(socket_.get(), what, &request) == 0;
  }

  Socket socket_;
};

std::string ip_of(const std::vector<HostAddress>& addresses, const std::string& interface) {
  try {
    return own_address(addresses, interface);
  } catch (const std::exception&) {
    return {}; // none, or several
  }
}

std::vector<std::string> interface_names() {
  std::vector<std::string> names;
  struct if_nameindex* const list = if_nameindex();
  for (const struct if_nameindex* each = list; each != nullptr && each->if_index != 0; ++each) {
    names.emplace_back(each->if_name);
  }
  if_freenameindex(list);
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> names_below(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

DeviceInfo interface_info(const fs::path& sysfs, const NetDevices& net_devices,
                          const std::vector<HostAddress>& addresses, const std::string& name) {
  DeviceInfo info{.name = name,
                  .interface = name,
                  .ip = ip_of(addresses, name),
                  .mac = net_devices.mac_of(name),
                  .megabits = net_devices.megabits_of(name),
                  .mtu = net_devices.mtu_of(name),
                  .is_up = net_devices.is_up(name)};
  if (net_devices.is_that_of(sysfs, name)) {
    set_place(info, sysfs / "class/net" / name / "device");
  }
  return info;
}

struct GidEntry {
  std::uint8_t index = 0;
  wire::IpAddress ip;
  std::string interface;
};

/// The RoCEv2 entries, in the table's order, that a host elsewhere can reach.
std::vector<GidEntry> roce_v2_entries(const fs::path& port) {
  std::vector<GidEntry> entries;
  for (unsigned index = 0; index <= UINT8_MAX; ++index) {
    const std::string number = std::to_string(index);
    const auto ip = wire::parse_ip(line_of(port / "gids" / number));
    if (!ip) {
      break; // behind the table's end
    }
    const bool is_link_local =
        !ip->is_v4() && ip->bytes[0] == 0xfe && (ip->bytes[1] & 0xc0) == 0x80;
    if (!is_link_local && line_of(port / "gid_attrs/types" / number) == "RoCE v2") {
      entries.push_back(
          {static_cast<std::uint8_t>(index), *ip, line_of(port / "gid_attrs/ndevs" / number)});
    }
  }
  return entries;
}

/// "100 Gb/sec (4X EDR)"
std::uint64_t megabits_in(const std::string& rate) {
  constexpr double kMegabits = 1000;
  return static_cast<std::uint64_t>(number_in<double>(rate).value_or(0) * kMegabits);
}

std::optional<DeviceInfo> nic_info(const fs::path& sysfs, const NetDevices& net_devices,
                                   const std::string& name) {
  const fs::path device = sysfs / "class/infiniband" / name;
  const fs::path port = device / "ports/1";
  if (line_of(port / "link_layer") != "Ethernet") {
    return std::nullopt; // InfiniBand
  }
  DeviceInfo info{.transport = TransportKind::verbs,
                  .name = name,
                  .megabits = megabits_in(line_of(port / "rate")),
                  .is_up = line_of(port / "state").ends_with("ACTIVE")};
  set_place(info, device / "device");
  const std::vector<GidEntry> entries = roce_v2_entries(port);
  auto chosen =
      std::ranges::find_if(entries, [](const GidEntry& entry) { return entry.ip.is_v4(); });
  if (chosen == entries.end()) {
    chosen = entries.begin();
  }
  if (chosen != entries.end()) {
    info.gid_index = chosen->index;
    info.ip = wire::to_string(chosen->ip);
    info.interface = chosen->interface;
    info.mac = net_devices.mac_of(chosen->interface);
    info.mtu = net_devices.mtu_of(chosen->interface);
  }
  return info;
}

} // namespace

std::vector<DeviceInfo> list_devices(const fs::path& sysfs) {
  const NetDevices net_devices;
  const std::vector<HostAddress> addresses = read_host_addresses();
  std::vector<DeviceInfo> devices;
  for (const std::string& name : interface_names()) {
    if (net_devices.is_ethernet(name)) {
      devices.push_back(interface_info(sysfs, net_devices, addresses, name));
    }
  }
  for (const std::string& name : names_below(sysfs / "class/infiniband")) {
    if (std::optional<DeviceInfo> nic = nic_info(sysfs, net_devices, name)) {
      devices.push_back(*std::move(nic));
    }
  }
  return devices;
}

} // namespace weir::host
