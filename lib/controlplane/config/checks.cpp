// SPDX-License-Identifier: BSD-3-Clause
#include "config/checks.hpp"

#include "config/fields.hpp"
#include "ethdev/drivers.hpp"
#include "text/number.hpp"
#include "weir/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace weir::config {
namespace {

/// The history of a connection covers 2N messages (docs/protocol.md §3). A PSN has 24 bits and is
/// compared as a serial number, so only half of the range has an order. Repeats come from both
/// sides of the history; that halves the range again.
constexpr std::uint64_t kHistoryPackets = (1U << 24) / 4;

/// They would mean something else where a port's name is asked for.
constexpr std::array<std::string_view, 2> kPromptWords{"all", "json"};

constexpr std::string_view kLettersAndDigits =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

constexpr std::size_t kLongestSocketPath = 107; // unix(7), sun_path with its final zero

/// EAL reads it as an int.
constexpr std::uint64_t kMostMemoryMib = 1U << 24;

constexpr std::string_view kUnix = "unix:";

constexpr std::size_t kLongestCertificateName = 64; // RFC 5280, ub-common-name
constexpr std::size_t kLongestSwitchName = 64;

bool has_only_letters(std::string_view name, std::string_view and_these) {
  return std::ranges::all_of(name, [and_these](char c) {
    return kLettersAndDigits.find(c) != std::string_view::npos ||
           and_these.find(c) != std::string_view::npos;
  });
}

bool is_port_number(std::string_view digits) {
  constexpr unsigned most = 65535;
  const std::optional<unsigned> port = text::parsed<unsigned>(digits);
  return port && *port != 0 && *port <= most;
}

/// Everybody on the machine can reach such a socket, and can listen on it first.
void refuse_abstract_socket(const yaml::Reader& node, std::string_view devargs) {
  const ethdev::DriverSocket& socket = ethdev::driver_of(devargs).socket;
  if (ethdev::is_abstract(socket, devargs)) {
    node.fail(node.found(),
              fmt::format("{}=/PATH,socket-abstract=no: a file, in a folder that only "
                          "the switch's user can change",
                          socket.argument));
  }
}

void refuse_long_socket(const yaml::Reader& node, std::string_view devargs) {
  const std::string_view argument = ethdev::driver_of(devargs).socket.argument;
  const std::size_t bytes = argument.empty() ? 0 : ethdev::argument_of(devargs, argument).size();
  if (bytes > kLongestSocketPath) {
    node.fail(fmt::format("{} of {} bytes", argument, bytes),
              fmt::format("at most {}", kLongestSocketPath));
  }
}

} // namespace

bool is_port_name(std::string_view name) {
  return has_only_letters(name, "_.-") &&
         std::ranges::find(kPromptWords, name) == kPromptWords.end();
}

bool is_switch_name(std::string_view name) {
  return name.size() <= kLongestSwitchName && has_only_letters(name, "_.-");
}

bool is_certificate_name(std::string_view name) {
  return name.size() <= kLongestCertificateName && has_only_letters(name, "_.@-");
}

bool can_be_listened_at(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos || !is_port_number(text.substr(colon + 1))) {
    return false;
  }
  std::string_view address = text.substr(0, colon);
  const bool has_brackets = address.starts_with('[') && address.ends_with(']');
  if (has_brackets) {
    address = address.substr(1, address.size() - 2);
  }
  const auto ip = wire::parse_ip(address);
  return ip && ip->is_v4() != has_brackets;
}

bool is_absolute_path(std::string_view path) {
  return path.starts_with('/');
}

void check_eal_options(const std::vector<yaml::Reader>& options) {
  std::vector<std::string> words;
  for (const yaml::Reader& option : options) {
    words.push_back(option.text(kAllowedEalOptions));
    if (sets_lcores(words.back())) {
      option.fail(option.found(), kAllowedEalOptions);
    }
  }
  for (const MemoryOption& memory : memory_options(words)) {
    const auto mib = text::parsed<std::uint64_t>(memory.number);
    if (!mib || *mib == 0 || *mib > kMostMemoryMib) {
      options[memory.place].fail(options[memory.place].found() + " for -m",
                                 fmt::format("MiB of memory, 1 to {}", kMostMemoryMib));
    }
  }
}

void check_device(const yaml::Reader& node, const PortConfig& port) {
  if (port.device_name().empty()) {
    node.fail(node.found(), "a device name before the first comma");
  }
  refuse_abstract_socket(node, port.device);
  refuse_long_socket(node, port.device);
}

void check_steering(const yaml::Reader& node, const PortConfig& port) {
  if (port.rx_steering == RxSteering::flow && port.rx_queues == 1) {
    node.fail("flow, and one receive queue", "rss, or flow with rx_queues: 2 to 16");
  }
}

void add_address(const yaml::Reader& node, const Text& form, ControlConfig& control) {
  const std::string address = text_at(node, form);
  const bool is_unix = address.starts_with(kUnix);
  const std::size_t bytes = address.size() - std::min(kUnix.size(), address.size());
  if (is_unix && bytes > kLongestSocketPath) {
    node.fail(fmt::format("a path of {} bytes", bytes),
              fmt::format("at most {}", kLongestSocketPath));
  }
  if (is_unix && is_absolute_path(address.substr(kUnix.size()))) {
    control.local.push_back(address.substr(kUnix.size()));
  } else if (can_be_listened_at(address)) {
    control.remote.push_back(address);
  } else {
    refuse(node, form);
  }
}

void check_addresses(const std::vector<yaml::Reader>& addresses, const ControlConfig& control) {
  for (const yaml::Reader& address : addresses) {
    if (!control.tls && !address.text(kUnix).starts_with(kUnix)) {
      address.fail(address.found() + " without control.tls",
                   "unix:/PATH, or an ADDRESS:PORT together with control.tls: only who has a "
                   "certificate may control a switch over a network");
    }
  }
}

void check_tls(const yaml::Reader& node, const ControlConfig& control) {
  if (control.tls && control.remote.empty()) {
    node.fail("certificates, but no address to use them at",
              "tls: with an ADDRESS:PORT in listen:");
  }
}

void check_use_of_operators(const yaml::Reader& node, const ControlConfig& control) {
  if (control.operators && control.remote.empty()) {
    node.fail("names of certificates, but no address to use them at",
              "operators: with an ADDRESS:PORT in listen:");
  }
}

void check_names_of_operators(const std::vector<yaml::Reader>& names, const Config& config) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (std::ranges::count(config.tenants, (*config.control.operators)[i], &TenantConfig::name)) {
      names[i].fail(names[i].found() + ", which is a tenant's name", "a name that no tenant has");
    }
  }
}

void check_rooms(const yaml::Reader& node, const RegionsConfig& regions) {
  const RegionRooms& rooms = regions.rooms;
  if (!node.is_present()) {
    node.fail("nothing", "a map with the keys regions, members, frames");
  }
  if (rooms.members < 2U * rooms.regions) {
    node.at("members").fail(fmt::format("{}, for {} regions", rooms.members, rooms.regions),
                            fmt::format("at least {}, two of each", 2 * rooms.regions));
  }
}

void check_regions(const yaml::Reader& node, const Config& config) {
  if (config.regions &&
      std::ranges::count(config.stations, config.regions->mac, &StationConfig::mac) != 0) {
    node.at("mac").fail(node.at("mac").found() + ", which is a tied station's",
                        "an address that no station has");
  }
}

void check_members_of_rings(const yaml::Reader& regions, const Config& config) {
  if (!config.regions) {
    return;
  }
  for (const ring::RingSpec& ring : config.rings) {
    if (std::ranges::count(ring.members, config.regions->address, &ring::Member::ip) != 0) {
      regions.at("address").fail(
          fmt::format("{}, which a member of ring {} has", regions.at("address").found(), ring.id),
          "an address that no host has");
    }
  }
}

void check_spare(const yaml::Reader& node, const Config& config) {
  if (config.ports.size() + config.spare.ports > kMostPorts) {
    node.at("ports").fail(
        fmt::format("{}, beside {} ports", config.spare.ports, config.ports.size()),
        fmt::format("at most {} ports in all", kMostPorts));
  }
}

void check_state_directory(const yaml::Reader& node, const Config& config) {
  if (config.spare.rings != 0 && config.state_directory.empty()) {
    refuse(node, std::get<Text>(field_of(config_fields(), "state_directory").value));
  }
}

void check_lease(const yaml::Reader& node, const ring::RingSpec& ring) {
  if (node.is_present() && ring.lease_ms < ring.patience_ms) {
    node.fail(node.found(), fmt::format("at least the ring's patience, {}: so long may ranks that "
                                        "wait for a slower one be silent",
                                        ring.patience_ms / 1000));
  }
}

void check_history(const yaml::Reader& node, const ring::RingSpec& ring) {
  const std::uint64_t per_window = 2ULL * ring.packets_per_message();
  const std::uint64_t packets = per_window * ring.window;
  if (packets <= kHistoryPackets) {
    return;
  }
  const std::uint64_t window = kHistoryPackets / per_window;
  const std::uint64_t bytes = kHistoryPackets / (2ULL * ring.window) * ring.mtu;
  node.fail(fmt::format("{} with window {} and mtu {}: a history of 2 * {} * {} = {} packets",
                        ring.max_message_bytes, ring.window, ring.mtu, ring.window,
                        ring.packets_per_message(), packets),
            fmt::format("at most {} packets, a quarter of the 24-bit PSN space: {}a "
                        "max_message_bytes of at most {}",
                        kHistoryPackets,
                        window == 0 ? "" : fmt::format("a window of at most {} or ", window),
                        std::min<std::uint64_t>(bytes, kMaxMessageBytes)));
}

} // namespace weir::config
