// SPDX-License-Identifier: BSD-3-Clause
#include "control/kernel_interface.hpp"

#include "ethdev/drivers.hpp"
#include "files/descriptor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <memory>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace weir::control {
namespace {

ifreq request_for(const std::string& name) {
  ifreq request{};
  name.copy(request.ifr_name, sizeof request.ifr_name - 1);
  return request;
}

bool has_carrier(int socket, const std::string& name) {
  ifreq request = request_for(name);
  constexpr int kBoth = IFF_UP | IFF_RUNNING;
  return ioctl(socket, SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & kBoth) == kBoth;
}

/// As /sys/class/net/NAME/speed has it, but of this network namespace, whatever /sys shows.
std::string speed_of(int socket, const std::string& name) {
  ifreq request = request_for(name);
  ethtool_cmd settings{};
  settings.cmd = ETHTOOL_GSET;
  request.ifr_data = reinterpret_cast<char*>(&settings);
  const bool is_told = ioctl(socket, SIOCETHTOOL, &request) == 0;
  const std::uint32_t speed = is_told ? ethtool_cmd_speed(&settings) : 0;
  return speed_text(speed);
}

[[noreturn]] void fail_to_watch(const std::string& name) {
  throw std::system_error(errno, std::generic_category(), name);
}

/// Bound to the interface. Of protocol 0 it receives nothing.
int socket_on(const std::string& name, std::uint16_t protocol = 0) {
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(protocol);
  address.sll_ifindex = static_cast<int>(if_nametoindex(name.c_str()));
  if (address.sll_ifindex == 0) {
    fail_to_watch(name);
  }
  const int descriptor = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (descriptor < 0) {
    fail_to_watch(name);
  }
  if (bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const std::system_error error(errno, std::generic_category(), name);
    close(descriptor);
    throw error;
  }
  return descriptor;
}

bool is_set_up(int socket, const std::string& name) {
  ifreq request = request_for(name);
  return ioctl(socket, SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_UP) != 0;
}

/// As net_af_packet of DPDK 22.11 has it: the low half is the group's number.
int fanout_of_af_packet(const std::string& interface) {
  const unsigned number = static_cast<unsigned>(getpid()) ^ if_nametoindex(interface.c_str());
  constexpr unsigned how =
      PACKET_FANOUT_HASH | PACKET_FANOUT_FLAG_DEFRAG | PACKET_FANOUT_FLAG_ROLLOVER;
  return static_cast<int>((number & 0xffff) | how << 16);
}

} // namespace

std::string why_not_for_af_packet(const std::string& interface) {
  const files::Descriptor socket(socket_on(interface, ETH_P_ALL));
  const int fanout = fanout_of_af_packet(interface);
  if (setsockopt(socket.get(), SOL_PACKET, PACKET_FANOUT, &fanout, sizeof fanout) == 0 ||
      errno != EINVAL) {
    return {};
  }
  if (!is_set_up(socket.get(), interface)) { // an older kernel
    return fmt::format("found {} down; allowed: an interface that is up: `ip link set {} up`",
                       interface, interface);
  }
  return fmt::format("another process of this network namespace has the packet fanout group {}, "
                     "which DPDK makes of this process's number and the interface's; start the "
                     "switch again, so that it has another number, or give each its own network "
                     "namespace",
                     fanout & 0xffff);
}

std::string speed_text(std::uint32_t megabits) {
  const bool is_known = megabits != 0 && megabits != static_cast<std::uint32_t>(SPEED_UNKNOWN);
  return is_known ? fmt::format(" {} Mbit/s", megabits) : ", speed unknown";
}

std::optional<std::string> interface_below(std::string_view devargs) {
  if (!ethdev::driver_of(devargs).is_on_interface) {
    return std::nullopt;
  }
  for (const std::string_view key : {"iface", "rx_iface", "tx_iface"}) {
    if (const std::string_view name = ethdev::argument_of(devargs, key); !name.empty()) {
      return std::string(name);
    }
  }
  return std::nullopt;
}

std::string interfaces_there() {
  using List = std::unique_ptr<struct if_nameindex, decltype(&if_freenameindex)>;
  const List list(if_nameindex(), &if_freenameindex);
  std::vector<std::string> names;
  for (const auto* entry = list.get(); entry != nullptr && entry->if_index != 0; ++entry) {
    names.emplace_back(entry->if_name);
  }
  std::ranges::sort(names);
  return fmt::format("{}", fmt::join(names, ", "));
}

KernelInterface::KernelInterface(std::string name)
    : name_(std::move(name)), socket_(socket_on(name_)) {}

KernelInterface::~KernelInterface() {
  close(socket_);
}

unsigned KernelInterface::index() const {
  sockaddr_ll address{};
  socklen_t length = sizeof address;
  const bool is_told = getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  return is_told && address.sll_ifindex > 0 ? static_cast<unsigned>(address.sll_ifindex) : 0;
}

std::string KernelInterface::link() const {
  std::array<char, IF_NAMESIZE> buffer{};
  const char* found = has_gone() ? nullptr : if_indextoname(index(), buffer.data());
  if (found == nullptr) {
    return "gone";
  }
  const std::string now(found);
  const std::string renamed = now == name_ ? "" : fmt::format(" (the interface is {} now)", now);
  return (has_carrier(socket_, now) ? "up" + speed_of(socket_, now) : "down") + renamed;
}

} // namespace weir::control
