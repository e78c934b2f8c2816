// SPDX-License-Identifier: BSD-3-Clause
#include "config/config.hpp"

#include "config/devargs.hpp"
#include "config/keys.hpp"
#include "ring/ring_set.hpp"
#include "text/number.hpp"
#include "weir/limits.hpp"
#include "yaml/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <variant>

namespace weir::config {
namespace {

using yaml::in_quotes;
using yaml::join_or;
using yaml::Reader;

using Words = std::span<const std::string_view>;

constexpr std::uintmax_t kLargestFile = 16U << 20;

/// The history of a connection covers 2N messages (docs/protocol.md §3). A PSN has 24 bits and is
/// compared as a serial number, so only half of the range has an order. Repeats come from both
/// sides of the history; that halves the range again.
constexpr std::uint64_t kHistoryPackets = (1U << 24) / 4;

/// Bytes of Ethernet payload around a full RoCEv2 payload: UDP 8, BTH 12, RETH 16, immediate 4,
/// ICRC 4 (IBTA §9.2, A17.3.1). This is an RDMA WRITE ONLY with immediate, the longest header that
/// is aggregated.
constexpr unsigned kTransportBytes = 8 + 12 + 16 + 4 + 4;
constexpr unsigned kIpv4Bytes = 20;
constexpr unsigned kIpv6Bytes = 40;

/// They would mean something else where a port's name is asked for.
constexpr std::array<std::string_view, 2> kPromptWords{"all", "json"};

constexpr std::size_t kLongestSocketPath = 107; // unix(7), sun_path with its final zero

constexpr std::size_t kLongestCertificateName = 64; // RFC 5280, ub-common-name

// Reading as the table of keys says.

std::uint64_t read_number(const Reader& node) {
  const Value& value = key_of(node.place()).value;
  if (const auto* one = std::get_if<OneNumberOf>(&value)) {
    return node.one_of(one->numbers);
  }
  if (const auto* power = std::get_if<PowerOfTwo>(&value)) {
    return node.power_of_two(power->range);
  }
  return node.whole_number(std::get<WholeNumber>(value).range);
}

/// The index of the word.
std::size_t read_word(const Reader& node) {
  return node.one_of(std::get<OneWordOf>(key_of(node.place()).value).words);
}

std::string_view form_of(const Reader& node) {
  return std::get<Text>(key_of(node.place()).value).form;
}

std::string read_text(const Reader& node) {
  return node.text(form_of(node));
}

std::vector<Reader> read_items(const Reader& node) {
  const auto& list = std::get<List>(key_of(node.place()).value);
  return node.items(list.count, list.things);
}

void expect_map(const Reader& node) {
  node.expect_map(names_in(node.place()));
}

template <typename T>
void read_optional(const Reader& node, T& value) {
  if (node.is_present()) {
    value = static_cast<T>(read_number(node));
  }
}

/// Remembers where each value was used, and rejects an equal second one.
template <typename T>
class Once {
 public:
  /// The error text prints `found` and `allowed`.
  void add(const T& value, const Reader& node, std::string_view found, std::string_view allowed) {
    const auto [first, is_new] = seen_.emplace(value, std::pair{node.key(), node.line()});
    if (!is_new) {
      const auto& [key, line] = first->second;
      node.fail(fmt::format("{}, which is {} on line {} too", found, key, line), allowed);
    }
  }

 private:
  std::map<T, std::pair<std::string, int>> seen_;
};

std::vector<std::string> read_eal(const Reader& node) {
  std::vector<std::string> options;
  if (!node.is_present()) {
    return options;
  }
  expect_map(node);
  const Reader list = node.at("options");
  if (!list.is_present()) {
    return options;
  }
  for (const Reader& option : read_items(list)) {
    options.push_back(read_text(option));
    if (sets_lcores(options.back())) {
      option.fail(option.found(), kAllowedEalOptions);
    }
  }
  return options;
}

/// Reads `ports`.
class PortsReader {
 public:
  std::vector<PortConfig> read(const Reader& node) {
    std::vector<PortConfig> ports;
    for (const Reader& item : read_items(node)) {
      ports.push_back(read_port(item));
    }
    return ports;
  }

 private:
  PortConfig read_port(const Reader& node) {
    expect_map(node);
    PortConfig port;
    port.name = read_name(node.at("name"));
    read_device(node.at("device"), port);
    if (const Reader macs = node.at("macs"); macs.is_present()) {
      for (const Reader& item : read_items(macs)) {
        port.macs.push_back(read_mac(item));
      }
    }
    read_optional(node.at("rx_queues"), port.rx_queues);
    read_rx_steering(node.at("rx_steering"), port);
    read_optional(node.at("mtu"), port.mtu);
    read_outer_tag(node.at("outer_tag"), port);
    read_optional(node.at("rx_descriptors"), port.rx_descriptors);
    read_optional(node.at("tx_descriptors"), port.tx_descriptors);
    return port;
  }

  /// After its queues.
  static void read_rx_steering(const Reader& node, PortConfig& port) {
    if (!node.is_present()) {
      return;
    }
    port.rx_steering = static_cast<RxSteering>(read_word(node));
    if (port.rx_steering == RxSteering::flow && port.rx_queues == 1) {
      node.fail("flow, and one receive queue", "rss, or flow with rx_queues: 2 to 16");
    }
  }

  static void read_outer_tag(const Reader& node, PortConfig& port) {
    if (node.is_present()) {
      port.outer_tag = read_word(node) == 0 ? wire::EtherType::vlan : wire::EtherType::service_vlan;
    }
  }

  std::string read_name(const Reader& node) {
    constexpr std::string_view letters =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    std::string name = read_text(node);
    if (name.find_first_not_of(letters) != std::string::npos ||
        std::ranges::find(kPromptWords, name) != kPromptWords.end()) {
      node.fail(node.found(), form_of(node));
    }
    names_.add(name, node, node.found(), "each port name once");
    return name;
  }

  void read_device(const Reader& node, PortConfig& port) {
    port.device = read_text(node);
    const std::string id = port.device_name();
    if (id.empty()) {
      node.fail(node.found(), "a device name before the first comma");
    }
    refuse_abstract_socket(node, port.device);
    refuse_long_socket(node, port.device);
    devices_.add(id, node, fmt::format("the device {}", in_quotes(id)), "each device once");
  }

  /// Everybody on the machine can reach such a socket, and can listen on it first.
  static void refuse_abstract_socket(const Reader& node, std::string_view devargs) {
    if (devargs.starts_with("net_memif") && argument_of(devargs, "socket-abstract") != "no") {
      node.fail(node.found(), "socket=/PATH,socket-abstract=no: a file, in a folder that only the "
                              "switch's user can change");
    }
  }

  static void refuse_long_socket(const Reader& node, std::string_view devargs) {
    for (const char* name : {"socket", "iface", "path"}) {
      const std::size_t bytes = argument_of(devargs, name).size();
      if (bytes > kLongestSocketPath) {
        node.fail(fmt::format("{} of {} bytes", name, bytes),
                  fmt::format("at most {}", kLongestSocketPath));
      }
    }
  }

  wire::MacAddress read_mac(const Reader& node) {
    const auto mac = wire::parse_mac(read_text(node));
    if (!mac || mac->is_group() || *mac == wire::MacAddress{}) {
      node.fail(node.found(), form_of(node));
    }
    macs_.add(*mac, node, node.found(), "each MAC address behind one port");
    return *mac;
  }

  Once<std::string> names_;
  Once<std::string> devices_;
  Once<wire::MacAddress> macs_;
};

std::vector<LcoreConfig> default_lcores(int line) {
  return {{.id = 0, .roles = {Role::control}, .idle = Idle::spin, .line = line},
          {.id = 1, .roles = {Role::rx, Role::worker, Role::tx}, .idle = Idle::spin, .line = line}};
}

/// Reads `lcores`.
class LcoresReader {
 public:
  std::vector<LcoreConfig> read(const Reader& node) {
    std::vector<LcoreConfig> lcores;
    for (const Reader& item : read_items(node)) {
      lcores.push_back(read_lcore(item));
    }
    for (const Role role : {Role::rx, Role::worker, Role::tx}) {
      if (!players_.contains(role)) {
        node.fail(fmt::format("no lcore with the role {}", name_of(role)),
                  "at least one lcore for each of rx, worker and tx");
      }
    }
    return lcores;
  }

 private:
  LcoreConfig read_lcore(const Reader& node) {
    expect_map(node);
    LcoreConfig lcore;
    const Reader id = node.at("id");
    lcore.id = static_cast<unsigned>(read_number(id));
    lcore.line = id.line();
    ids_.add(lcore.id, id, id.found(), "each lcore once");
    Once<Role> own;
    for (const Reader& item : read_items(node.at("roles"))) {
      const auto role = static_cast<Role>(read_word(item));
      own.add(role, item, item.found(), "each role once per lcore");
      if (role == Role::control) {
        control_.add(role, item, item.found(), "one control lcore");
      }
      players_.emplace(role, lcore.id);
      lcore.roles.push_back(role);
    }
    if (const Reader idle = node.at("idle"); idle.is_present()) {
      lcore.idle = static_cast<Idle>(read_word(idle));
    }
    return lcore;
  }

  Once<unsigned> ids_;
  Once<Role> control_;
  std::map<Role, unsigned> players_; // an lcore with that role
};

L2Config read_l2(const Reader& node) {
  L2Config l2;
  if (node.is_present()) {
    expect_map(node);
    read_optional(node.at("aging_s"), l2.aging_s);
    read_optional(node.at("entries"), l2.entries);
  }
  return l2;
}

ConnectionsConfig read_connections(const Reader& node) {
  ConnectionsConfig connections;
  if (node.is_present()) {
    expect_map(node);
    read_optional(node.at("plain_entries"), connections.plain_entries);
    read_optional(node.at("aging_s"), connections.aging_s);
  }
  return connections;
}

void check_spare_ports(const Reader& node, std::size_t ports, const SpareConfig& spare) {
  if (ports + spare.ports > kMostPorts) {
    node.at("ports").fail(fmt::format("{}, beside {} ports", spare.ports, ports),
                          fmt::format("at most {} ports in all", kMostPorts));
  }
}

SpareConfig read_spare(const Reader& node) {
  SpareConfig spare;
  if (node.is_present()) {
    expect_map(node);
    spare.rings = static_cast<std::uint16_t>(read_number(node.at("rings")));
    spare.members = static_cast<std::uint32_t>(read_number(node.at("members")));
    spare.frames = static_cast<std::uint32_t>(read_number(node.at("frames")));
    read_optional(node.at("ports"), spare.ports);
  }
  return spare;
}

/// Rings that are made at run time must be remembered somewhere (docs/protocol.md §2a).
std::string read_state_directory(const Reader& node, const SpareConfig& spare) {
  if (!node.is_present() && spare.rings == 0) {
    return {};
  }
  std::string directory = read_text(node);
  if (!directory.starts_with('/')) {
    node.fail(node.found(), form_of(node));
  }
  return directory;
}

bool is_port_number(std::string_view digits) {
  constexpr unsigned most = 65535;
  const std::optional<unsigned> port = text::parsed<unsigned>(digits);
  return port && *port != 0 && *port <= most;
}

/// "ADDRESS:PORT", an IPv6 address in brackets.
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

MetricsConfig read_metrics(const Reader& node) {
  MetricsConfig metrics;
  if (node.is_present()) {
    expect_map(node);
    const Reader listen = node.at("listen");
    metrics.listen = read_text(listen);
    if (!can_be_listened_at(metrics.listen)) {
      listen.fail(listen.found(), form_of(listen));
    }
  }
  return metrics;
}

/// A common name as certificates have it, of which nobody has to wonder what is in it.
std::string read_certificate_name(const Reader& node) {
  constexpr std::string_view letters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.@-";
  std::string name = read_text(node);
  if (name.size() > kLongestCertificateName || name.find_first_not_of(letters) != name.npos) {
    node.fail(node.found(), form_of(node));
  }
  return name;
}

template <typename T>
void read_limit(const Reader& node, std::optional<T>& limit) {
  if (node.is_present()) {
    limit = static_cast<T>(read_number(node));
  }
}

std::vector<AddressBlock> read_hosts(const Reader& node) {
  std::vector<AddressBlock> blocks;
  if (!node.is_present()) {
    return blocks;
  }
  for (const Reader& item : read_items(node)) {
    const auto block = parse_block(read_text(item));
    if (!block) {
      item.fail(item.found(), form_of(item));
    }
    blocks.push_back(*block);
  }
  return blocks;
}

std::vector<TenantConfig> read_tenants(const Reader& node) {
  std::vector<TenantConfig> tenants;
  if (!node.is_present()) {
    return tenants;
  }
  Once<std::string> names;
  for (const Reader& item : read_items(node)) {
    expect_map(item);
    TenantConfig& tenant = tenants.emplace_back();
    const Reader name = item.at("name");
    tenant.name = read_certificate_name(name);
    names.add(tenant.name, name, name.found(), "each tenant once");
    read_limit(item.at("rings"), tenant.rings);
    read_limit(item.at("memory_mib"), tenant.memory_mib);
    read_limit(item.at("neighbours"), tenant.neighbours);
    read_limit(item.at("packets_per_second"), tenant.packets_per_second);
    tenant.hosts = read_hosts(item.at("hosts"));
  }
  return tenants;
}

/// Reads `control`.
class ControlReader {
 public:
  static ControlConfig read(const Reader& node, const std::vector<TenantConfig>& tenants) {
    ControlConfig control;
    if (!node.is_present()) {
      return control;
    }
    expect_map(node);
    control.is_default = false;
    const Reader tls = node.at("tls");
    if (tls.is_present()) {
      control.tls = read_tls(tls);
    }
    for (const Reader& item : read_items(node.at("listen"))) {
      add_address(item, control);
    }
    if (tls.is_present() && control.remote.empty()) {
      tls.fail("certificates, but no address to use them at",
               "tls: with an ADDRESS:PORT in listen:");
    }
    if (const Reader operators = node.at("operators"); operators.is_present()) {
      control.operators = read_operators(operators, tenants);
      if (control.remote.empty()) {
        operators.fail("names of certificates, but no address to use them at",
                       "operators: with an ADDRESS:PORT in listen:");
      }
    }
    return control;
  }

 private:
  static void add_address(const Reader& node, ControlConfig& control) {
    const std::string address = read_text(node);
    if (address.starts_with(kUnix) && address.size() > kLongestUnixAddress) {
      node.fail(fmt::format("a path of {} bytes", address.size() - kUnix.size()),
                fmt::format("at most {}", kLongestSocketPath));
    }
    if (const auto path = unix_path_of(address)) {
      control.local.push_back(*path);
    } else if (!can_be_listened_at(address)) {
      node.fail(node.found(), form_of(node));
    } else if (!control.tls) {
      node.fail(node.found() + " without control.tls",
                "unix:/PATH, or an ADDRESS:PORT together with control.tls: only who has a "
                "certificate may control a switch over a network");
    } else {
      control.remote.push_back(address);
    }
  }

  static std::optional<std::string> unix_path_of(std::string_view address) {
    const bool is_path = address.starts_with("unix:/") && address.size() <= kLongestUnixAddress;
    return is_path ? std::optional<std::string>(address.substr(kUnix.size())) : std::nullopt;
  }

  static std::vector<std::string> read_operators(const Reader& node,
                                                 const std::vector<TenantConfig>& tenants) {
    std::vector<std::string> names;
    for (const Reader& item : read_items(node)) {
      names.push_back(read_certificate_name(item));
      if (std::ranges::count(tenants, names.back(), &TenantConfig::name) != 0) {
        item.fail(item.found() + ", which is a tenant's name", "a name that no tenant has");
      }
    }
    return names;
  }

  static TlsFiles read_tls(const Reader& node) {
    expect_map(node);
    return {.certificate = read_text(node.at("certificate")),
            .key = read_text(node.at("key")),
            .client_authority = read_text(node.at("client_authority"))};
  }

  static constexpr std::string_view kUnix = "unix:";
  static constexpr std::size_t kLongestUnixAddress = kUnix.size() + kLongestSocketPath;
};

/// Whether a host can send from the address: not 0/8, 127/8, 224/3 (RFC 6890), ::, ::1 or ff00::/8
/// (RFC 4291).
bool is_host_address(const wire::IpAddress& address) {
  if (address.is_v4()) {
    const std::uint8_t first = address.bytes[12];
    return first != 0 && first != 127 && first < 224;
  }
  const bool zero_but_last = std::all_of(address.bytes.begin(), address.bytes.end() - 1,
                                         [](auto byte) { return byte == 0; });
  return address.bytes[0] != 0xff && !(zero_but_last && address.bytes[15] <= 1);
}

/// Reads `rings`.
class RingsReader {
 public:
  RingsReader(const std::vector<PortConfig>& ports, const std::vector<TenantConfig>& tenants)
      : ports_(ports), tenants_(tenants) {
    for (std::uint16_t place = 0; place < ports.size(); ++place) {
      if (ports[place].is_there()) {
        places_.push_back(place);
        port_names_.push_back(ports[place].name);
      }
    }
    for (const TenantConfig& tenant : tenants) {
      tenant_names_.push_back(tenant.name);
    }
  }

  std::vector<ring::RingSpec> read(const Reader& node) {
    std::vector<ring::RingSpec> rings;
    for (const Reader& item : read_items(node)) {
      rings.push_back(read_ring(item));
    }
    return rings;
  }

  ring::RingSpec read_ring(const Reader& node) {
    expect_map(node);
    ring::RingSpec ring;
    const Reader id = node.at("id");
    ring.id = static_cast<std::uint32_t>(read_number(id));
    ids_.add(ring.id, id, id.found(), "each ring id once");
    ring.window = static_cast<std::uint32_t>(read_number(node.at("window")));
    ring.max_message_bytes = static_cast<std::uint32_t>(read_number(node.at("max_message_bytes")));
    if (const Reader mtu = node.at("mtu"); mtu.is_present()) {
      ring.mtu = static_cast<std::uint16_t>(read_number(mtu));
    }
    if (const Reader patience = node.at("patience"); patience.is_present()) {
      ring.patience_ms = 1000 * read_number(patience);
    }
    if (const Reader keep_alive = node.at("keep_alive"); keep_alive.is_present()) {
      ring.keep_alive = static_cast<ring::KeepAlive>(read_word(keep_alive));
    }
    ring.lease_ms = read_lease(node.at("lease"), ring);
    check_history(node, ring);
    ring.members = read_members(node.at("members"));
    members_in_all_ += ring.members.size();
    if (members_in_all_ > ring::RingSet::kMostMembers) {
      node.at("members").fail(
          fmt::format("{}, the {}th in all rings", ring.members.size(), members_in_all_),
          fmt::format("at most {} members in all rings", ring::RingSet::kMostMembers));
    }
    check_mtu(node.at("mtu"), ring);
    if (const Reader tenant = node.at("tenant"); tenant.is_present()) {
      ring.tenant = read_tenant(tenant);
      check_hosts(node.at("members"), ring);
    }
    return ring;
  }

 private:
  std::string read_tenant(const Reader& node) const {
    if (tenant_names_.empty()) {
      node.fail(node.found(), "a name under tenants:, of which there is none");
    }
    return std::string(tenant_names_[node.one_of(Words(tenant_names_))]);
  }

  /// The ring has a tenant.
  void check_hosts(const Reader& node, const ring::RingSpec& ring) const {
    const TenantConfig& tenant = *std::ranges::find(tenants_, ring.tenant, &TenantConfig::name);
    const std::vector<Reader> items = read_items(node);
    for (std::size_t rank = 0; rank < ring.members.size(); ++rank) {
      if (!tenant.may_have(ring.members[rank].ip)) {
        const Reader ip = items[rank].at("ip");
        ip.fail(fmt::format("{}, which is no host of tenant {}", ip.found(), tenant.name),
                fmt::format("an address in its hosts:, {}", fmt::join(hosts_of(tenant), ", ")));
      }
    }
  }

  std::vector<ring::Member> read_members(const Reader& node) {
    std::vector<ring::Member> members;
    Once<wire::IpAddress> addresses;
    for (const Reader& item : read_items(node)) {
      members.push_back(read_member(item));
      const Reader ip = item.at("ip");
      addresses.add(members.back().ip, ip, ip.found(), "each address once per ring");
      check_one_port(members.back(), item.at("port"));
      if (members.back().ip.is_v4() != members.front().ip.is_v4()) {
        // Packets between neighbours have one IP header, so one address family.
        ip.fail(fmt::format("{} in a ring whose first member is {}", ip.found(),
                            to_string(members.front().ip)),
                "members all IPv4 or all IPv6");
      }
    }
    return members;
  }

  /// A ring whose ranks the switch itself keeps silent must not be taken for a dead one.
  static std::uint64_t read_lease(const Reader& node, const ring::RingSpec& ring) {
    if (!node.is_present()) {
      return std::max(ring.lease_ms, ring.patience_ms);
    }
    const std::uint64_t lease_ms = 1000 * read_number(node);
    if (lease_ms < ring.patience_ms) {
      node.fail(node.found(),
                fmt::format("at least the ring's patience, {}: so long may ranks that "
                            "wait for a slower one be silent",
                            ring.patience_ms / 1000));
    }
    return lease_ms;
  }

  ring::Member read_member(const Reader& node) const {
    expect_map(node);
    const Reader ip = node.at("ip");
    const auto address = wire::parse_ip(read_text(ip));
    if (!address || !is_host_address(*address)) {
      ip.fail(ip.found(), form_of(ip));
    }
    ring::Member member{.ip = *address, .port = std::nullopt};
    if (const Reader port = node.at("port"); port.is_present()) {
      member.port = places_[port.one_of(Words(port_names_))];
    }
    return member;
  }

  /// All traffic to an address leaves by one port (docs/protocol.md §3, "Ports").
  void check_one_port(const ring::Member& member, const Reader& node) {
    if (!member.port) {
      return;
    }
    const auto [first, is_new] =
        ties_.try_emplace(member.ip, Tie{*member.port, node.key(), node.line()});
    const Tie& known = first->second;
    if (known.port != *member.port) {
      node.fail(fmt::format("{} for {}, which {} on line {} ties to {}", node.found(),
                            to_string(member.ip), known.key, known.line, ports_[known.port].name),
                "one port for each address");
    }
  }

  static void check_history(const Reader& node, const ring::RingSpec& ring) {
    const std::uint64_t per_window = 2ULL * ring.packets_per_message();
    const std::uint64_t packets = per_window * ring.window;
    if (packets <= kHistoryPackets) {
      return;
    }
    const std::uint64_t window = kHistoryPackets / per_window;
    const std::uint64_t bytes = kHistoryPackets / (2ULL * ring.window) * ring.mtu;
    node.at("max_message_bytes")
        .fail(fmt::format("{} with window {} and mtu {}: a history of 2 * {} * {} = {} packets",
                          ring.max_message_bytes, ring.window, ring.mtu, ring.window,
                          ring.packets_per_message(), packets),
              fmt::format("at most {} packets, a quarter of the 24-bit PSN space: {}a "
                          "max_message_bytes of at most {}",
                          kHistoryPackets,
                          window == 0 ? "" : fmt::format("a window of at most {} or ", window),
                          std::min<std::uint64_t>(bytes, kMaxMessageBytes)));
  }

  /// A member without a port may be behind any port.
  void check_mtu(const Reader& node, const ring::RingSpec& ring) const {
    for (const ring::Member& member : ring.members) {
      for (const std::uint16_t place : places_) {
        if (member.port.value_or(place) == place) {
          check_mtu_on_port(node, ring, member, place);
        }
      }
    }
  }

  void check_mtu_on_port(const Reader& node, const ring::RingSpec& ring, const ring::Member& member,
                         std::size_t index) const {
    const PortConfig& port = ports_[index];
    const unsigned needed = packet_bytes(member.ip, ring.mtu);
    if (needed <= port.mtu) {
      return;
    }
    std::vector<std::uint64_t> fitting;
    std::ranges::copy_if(kPathMtus, std::back_inserter(fitting), [&](std::uint64_t path_mtu) {
      return packet_bytes(member.ip, static_cast<unsigned>(path_mtu)) <= port.mtu;
    });
    node.fail(
        fmt::format("{}, which makes packets of {} bytes for {}, over port {}'s mtu of {}",
                    ring.mtu, needed, to_string(member.ip), port.name, port.mtu),
        fmt::format("{} here or at least {} in ports[{}].mtu", join_or(fitting), needed, index));
  }

  /// The port that a member's address is tied to, and the place in the file that says so.
  struct Tie {
    std::uint16_t port;
    std::string key;
    int line;
  };

  const std::vector<PortConfig>& ports_;
  const std::vector<TenantConfig>& tenants_;
  std::vector<std::uint16_t> places_;        // of ports_ that have a port
  std::vector<std::string_view> port_names_; // of places_
  std::vector<std::string_view> tenant_names_;
  Once<std::uint32_t> ids_;
  std::size_t members_in_all_ = 0;
  std::map<wire::IpAddress, Tie> ties_;
};

Config read_config(const Reader& root) {
  expect_map(root);
  Config config;
  config.eal_options = read_eal(root.at("eal"));
  config.ports = PortsReader().read(root.at("ports"));
  const Reader lcores = root.at("lcores");
  config.lcores = lcores.is_present() ? LcoresReader().read(lcores) : default_lcores(lcores.line());
  config.has_own_lcores = lcores.is_present();
  config.l2 = read_l2(root.at("l2"));
  config.connections = read_connections(root.at("connections"));
  config.metrics = read_metrics(root.at("metrics"));
  config.tenants = read_tenants(root.at("tenants"));
  config.control = ControlReader::read(root.at("control"), config.tenants);
  config.spare = read_spare(root.at("spare"));
  check_spare_ports(root.at("spare"), config.ports.size(), config.spare);
  read_optional(root.at("drain_s"), config.drain_s);
  config.state_directory = read_state_directory(root.at("state_directory"), config.spare);
  return config;
}

void read_rings(const Reader& root, const std::vector<PortConfig>& ports, Config& config) {
  if (const Reader rings = root.at("rings"); rings.is_present()) {
    config.rings = RingsReader(ports, config.tenants).read(rings);
  }
}

} // namespace

bool TenantConfig::may_have(const wire::IpAddress& host) const {
  return hosts.empty() || std::ranges::any_of(hosts, [&](const AddressBlock& block) {
           return block.contains(host);
         });
}

std::vector<std::string> hosts_of(const TenantConfig& tenant) {
  std::vector<std::string> blocks;
  for (const AddressBlock& block : tenant.hosts) {
    blocks.push_back(to_string(block));
  }
  return blocks;
}

unsigned packet_bytes(const wire::IpAddress& member, unsigned path_mtu) {
  return path_mtu + kTransportBytes + (member.is_v4() ? kIpv4Bytes : kIpv6Bytes);
}

std::string read_file(const std::filesystem::path& file) {
  constexpr std::string_view allowed = "a readable YAML file of at most 16 MiB";
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    Reader::fail_file(file.string(), "no such file", allowed);
  }
  if (error) {
    Reader::fail_file(file.string(), error.message(), allowed);
  }
  if (std::filesystem::is_directory(status)) {
    Reader::fail_file(file.string(), "a directory", allowed);
  }
  std::ifstream stream(file, std::ios::binary);
  std::string text;
  std::array<char, 65536> chunk{};
  while (stream.read(chunk.data(), chunk.size()) || stream.gcount() > 0) {
    text.append(chunk.data(), static_cast<std::size_t>(stream.gcount()));
    if (text.size() > kLargestFile) {
      Reader::fail_file(file.string(), "more than 16 MiB", allowed);
    }
  }
  if (!stream.eof()) {
    Reader::fail_file(file.string(), "a file that cannot be read", allowed);
  }
  return text;
}

Config load_config(const std::filesystem::path& file) {
  Config config = parse_config(read_file(file), file.string());
  config.file = std::filesystem::absolute(file).string();
  return config;
}

Config parse_config(std::string_view yaml, std::string_view name) {
  const Reader root = Reader::parse(yaml, name);
  Config config = read_config(root);
  read_rings(root, config.ports, config);
  return config;
}

Config parse_config(std::string_view yaml, std::string_view name,
                    const std::vector<PortConfig>& running) {
  const Reader root = Reader::parse(yaml, name);
  Config config = read_config(root);
  read_rings(root, running, config);
  return config;
}

std::vector<ring::RingSpec> load_rings(const std::filesystem::path& file, const Config& config) {
  return parse_rings(read_file(file), file.string(), config);
}

std::vector<ring::RingSpec> parse_rings(std::string_view yaml, std::string_view name,
                                        const Config& config) {
  const Reader root = Reader::parse(yaml, name);
  RingsReader reader(config.ports, config.tenants);
  return root.is_list() ? reader.read(root.standing_for("rings"))
                        : std::vector{reader.read_ring(root.standing_for("rings[0]"))};
}

bool sets_lcores(std::string_view eal_option) {
  constexpr std::string_view letters = "clsS"; // core mask and list, service core mask and list
  constexpr std::array<std::string_view, 2> names{"lcores", "main-lcore"};
  if (!eal_option.starts_with("--")) {
    return eal_option.size() > 1 && eal_option[0] == '-' &&
           letters.find(eal_option[1]) != letters.npos;
  }
  // getopt_long accepts an abbreviated name.
  const std::string_view name = eal_option.substr(2, eal_option.find('=') - 2);
  return name.size() > 1 && std::ranges::any_of(names, [name](std::string_view full) {
           return full.starts_with(name);
         });
}

std::string_view name_of(Role role) {
  const auto index = static_cast<std::size_t>(role);
  return index < kRoleNames.size() ? kRoleNames[index] : "unknown";
}

} // namespace weir::config
