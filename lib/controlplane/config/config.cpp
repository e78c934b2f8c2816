// SPDX-License-Identifier: BSD-3-Clause
#include "config/config.hpp"

#include "config/checks.hpp"
#include "config/fields.hpp"
#include "config/lists.hpp"
#include "config/once.hpp"
#include "config/port_places.hpp"
#include "config/ring_tree.hpp"
#include "ring/ring.hpp"
#include "ring/ring_set.hpp"
#include "weir/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

namespace weir::config {
namespace {

using yaml::in_quotes;
using yaml::join_or;
using yaml::Reader;

using Words = std::span<const std::string_view>;

/// Bytes of Ethernet payload around a full RoCEv2 payload: UDP 8, BTH 12, RETH 16, immediate 4,
/// ICRC 4 (IBTA §9.2, A17.3.1). This is an RDMA WRITE ONLY with immediate, the longest header that
/// is aggregated.
constexpr unsigned kTransportBytes = 8 + 12 + 16 + 4 + 4;
constexpr unsigned kIpv4Bytes = 20;
constexpr unsigned kIpv6Bytes = 40;

/// Reads `ports`.
class PortsReader {
 public:
  PortConfig read_port(const Reader& node) {
    PortConfig port;
    read_map(port_fields(), node, port);
    const Reader name = node.at("name");
    names_.add(port.name, name, name.found(), "each port name once");
    const std::string device = port.device_name();
    devices_.add(device, node.at("device"), fmt::format("the device {}", in_quotes(device)),
                 "each device once");
    if (!port.macs.empty()) {
      add_macs(port, items_of(port_fields(), node, "macs"));
    }
    return port;
  }

 private:
  void add_macs(const PortConfig& port, const std::vector<Reader>& items) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      macs_.add(port.macs[i], items[i], items[i].found(), "each MAC address behind one port");
    }
  }

  Once<std::string> names_;
  Once<std::string> devices_;
  Once<wire::MacAddress> macs_;
};

/// Until the switch has chosen.
std::vector<LcoreConfig> default_lcores(int line) {
  return {{.id = 0, .roles = {Role::control}, .idle = Idle::spin, .line = line},
          {.id = 1, .roles = {Role::rx, Role::worker, Role::tx}, .idle = Idle::spin, .line = line}};
}

/// Reads `lcores`.
class LcoresReader {
 public:
  LcoreConfig read_lcore(const Reader& node) {
    LcoreConfig lcore;
    read_map(lcore_fields(), node, lcore);
    const Reader id = node.at("id");
    lcore.line = id.line();
    ids_.add(lcore.id, id, id.found(), "each lcore once");
    Once<Role> own;
    const std::vector<Reader> items = items_of(lcore_fields(), node, "roles");
    for (std::size_t i = 0; i < items.size(); ++i) {
      const Role role = lcore.roles[i];
      own.add(role, items[i], items[i].found(), "each role once per lcore");
      if (role == Role::control) {
        control_.add(role, items[i], items[i].found(), "one control lcore");
      }
      players_.emplace(role, lcore.id);
    }
    return lcore;
  }

  /// After all.
  void check_roles(const Reader& node) const {
    for (const Role role : {Role::rx, Role::worker, Role::tx}) {
      if (!players_.contains(role)) {
        node.fail(fmt::format("no lcore with the role {}", name_of(role)),
                  "at least one lcore for each of rx, worker and tx");
      }
    }
  }

 private:
  Once<unsigned> ids_;
  Once<Role> control_;
  std::map<Role, unsigned> players_; // an lcore with that role
};

/// Reads `rings`.
class RingsReader {
 public:
  RingsReader(const std::vector<PortConfig>& ports, const std::vector<TenantConfig>& tenants)
      : ports_(ports), places_(ports), tenants_(tenants) {
    for (const TenantConfig& tenant : tenants) {
      tenant_names_.push_back(tenant.name);
    }
  }

  std::vector<ring::RingSpec> read(const Reader& node) {
    std::vector<ring::RingSpec> rings;
    for (const Reader& item : items_at(node, field_of(config_fields(), "rings").value)) {
      std::ranges::move(read_job(item), std::back_inserter(rings));
    }
    return rings;
  }

  /// The parallel rings of one entry.
  std::vector<ring::RingSpec> read_job(const Reader& node) {
    ring::RingSpec ring = read_ring(node);
    const std::uint16_t count = std::exchange(ring.parallel, std::uint16_t{1});
    const Reader parallel = node.at("parallel");
    if (UINT32_MAX - ring.id < count - 1u) {
      parallel.fail(fmt::format("{}, with id {}", count, ring.id), "ids up to 4294967295");
    }
    std::vector<ring::RingSpec> rings(count, ring);
    for (std::uint16_t place = 1; place < count; ++place) {
      rings[place].id += place;
      ids_.add(rings[place].id, parallel, fmt::format("ring {} of this job", rings[place].id),
               "each ring id once");
      count_members(node, ring);
    }
    return rings;
  }

 private:
  ring::RingSpec read_ring(const Reader& node) {
    ring::RingSpec ring;
    read_map(ring_fields(), node, ring);
    const Reader id = node.at("id");
    ids_.add(ring.id, id, id.found(), "each ring id once");
    if (!node.at("lease").is_present()) {
      ring.lease_ms = std::max(ring.lease_ms, ring.patience_ms);
    }
    ring.members = read_members(items_of(ring_fields(), node, "members"));
    count_members(node, ring);
    read_tree(node, places_, ring);
    check_ports_of_children(node, ring);
    forget_usual_children(ring);
    check_mtu(node.at("mtu"), ring);
    if (const Reader tenant = node.at("tenant"); tenant.is_present()) {
      ring.tenant = read_tenant(tenant);
      check_hosts(items_of(ring_fields(), node, "members"), ring);
    }
    return ring;
  }

  void count_members(const Reader& node, const ring::RingSpec& ring) {
    members_in_all_ += ring.members.size();
    if (members_in_all_ > ring::RingSet::kMostMembers) {
      node.at("members").fail(
          fmt::format("{}, the {}th in all rings", ring.members.size(), members_in_all_),
          fmt::format("at most {} members in all rings", ring::RingSet::kMostMembers));
    }
  }

  std::string read_tenant(const Reader& node) const {
    if (tenant_names_.empty()) {
      node.fail(node.found(), "a name under tenants:, of which there is none");
    }
    return std::string(tenant_names_[node.one_of(Words(tenant_names_))]);
  }

  /// The ring has a tenant.
  void check_hosts(const std::vector<Reader>& items, const ring::RingSpec& ring) const {
    const TenantConfig& tenant = *std::ranges::find(tenants_, ring.tenant, &TenantConfig::name);
    for (std::size_t rank = 0; rank < ring.members.size(); ++rank) {
      if (!tenant.may_have(ring.members[rank].ip)) {
        const Reader ip = items[rank].at("ip");
        ip.fail(fmt::format("{}, which is no host of tenant {}", ip.found(), tenant.name),
                fmt::format("an address in its hosts:, {}", fmt::join(hosts_of(tenant), ", ")));
      }
    }
  }

  std::vector<ring::Member> read_members(const std::vector<Reader>& items) {
    std::vector<ring::Member> members;
    Once<wire::IpAddress> addresses;
    for (const Reader& item : items) {
      members.push_back(read_member(item));
      const Reader ip = item.at("ip");
      addresses.add(members.back().ip, ip, ip.found(), "each address once per ring");
      if (members.back().port) {
        check_one_port(members.back().ip, *members.back().port, item.at("port"));
      }
      if (members.back().ip.is_v4() != members.front().ip.is_v4()) {
        // Packets between neighbours have one IP header, so one address family.
        ip.fail(fmt::format("{} in a ring whose first member is {}", ip.found(),
                            to_string(members.front().ip)),
                "members all IPv4 or all IPv6");
      }
    }
    return members;
  }

  ring::Member read_member(const Reader& node) const {
    ring::Member member;
    read_map(member_fields(), node, member);
    if (const Reader port = node.at("port"); port.is_present()) {
      member.port = places_.named_at(port);
    }
    return member;
  }

  /// Of ranks: a host behind another switch may be reached by several ports, each in its own ring.
  void check_ports_of_children(const Reader& node, const ring::RingSpec& ring) {
    const std::vector<Reader> items =
        ring.children.empty() ? std::vector<Reader>() : items_of(ring_fields(), node, "children");
    for (std::size_t i = 0; i < items.size(); ++i) {
      const ring::Child& child = ring.children[i];
      if (child.kind == ring::ChildKind::rank && child.port) {
        check_one_port(ring.members[child.ranks.first].ip, *child.port, items[i].at("port"));
      }
    }
  }

  /// All traffic to an address leaves by one port (docs/protocol.md §3, "Ports").
  void check_one_port(const wire::IpAddress& ip, std::uint16_t port, const Reader& node) {
    const auto [first, is_new] = ties_.try_emplace(ip, Tie{port, node.key(), node.line()});
    const Tie& known = first->second;
    if (known.port != port) {
      node.fail(fmt::format("{} for {}, which {} on line {} ties to {}", node.found(),
                            to_string(ip), known.key, known.line, ports_[known.port].name),
                "one port for each address");
    }
  }

  /// A member without a port may be behind any port.
  void check_mtu(const Reader& node, const ring::RingSpec& spec) const {
    const ring::Ring ring(spec);
    for (std::uint16_t sender = 0; sender < ring.senders(); ++sender) {
      for (const std::uint16_t place : places_.all()) {
        if (ring.port_of(sender).value_or(place) == place) {
          check_mtu_on_port(node, spec, spec.members[ring.rank_of(sender)], place);
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
  const PortPlaces places_; // of ports_
  const std::vector<TenantConfig>& tenants_;
  std::vector<std::string_view> tenant_names_;
  Once<std::uint32_t> ids_;
  std::size_t members_in_all_ = 0;
  std::map<wire::IpAddress, Tie> ties_;
};

/// Of the ports that are there.
std::vector<std::string_view> names_of(const std::vector<PortConfig>& ports) {
  std::vector<std::string_view> names;
  for (const PortConfig& port : ports) {
    if (port.is_there()) {
      names.push_back(port.name);
    }
  }
  return names;
}

/// A station's port, of those of the file.
void check_bridged(const Reader& node, const std::vector<PortConfig>& ports) {
  const std::vector<std::string_view> names = names_of(ports);
  if (ports[node.one_of(Words(names))].bridge == YesNo::no) {
    node.fail(node.found() + ", which has bridge: no", "a port with bridge: yes");
  }
}

/// Their ports are among those that a switch runs with.
void check_stations(const Reader& node, const std::vector<PortConfig>& running) {
  const std::vector<std::string_view> names = names_of(running);
  if (node.is_present()) {
    for (const Reader& item : items_at(node, field_of(config_fields(), "stations").value)) {
      item.at("port").one_of(Words(names));
    }
  }
}

void read_rings(const Reader& root, const std::vector<PortConfig>& ports, Config& config) {
  if (const Reader rings = root.at("rings"); rings.is_present()) {
    config.rings = RingsReader(ports, config.tenants).read(rings);
  }
}

Config read_config(const Reader& root) {
  Config config;
  read_map(config_fields(), root, config);
  return config;
}

} // namespace

void read_ports(const Reader& node, Config& config) {
  PortsReader reader;
  for (const Reader& item : items_at(node, field_of(config_fields(), "ports").value)) {
    config.ports.push_back(reader.read_port(item));
  }
}

void read_lcores(const Reader& node, Config& config) {
  const bool is_word = node.is_present() && !node.is_list();
  if (is_word && node.found() != in_quotes(kLcoresByTheSwitch)) {
    node.fail(node.found(), allowed(field_of(config_fields(), "lcores").value));
  }
  if (is_word || !node.is_present()) {
    config.lcores = default_lcores(node.line());
    return;
  }
  config.lcores_by = LcoresBy::file;
  LcoresReader reader;
  for (const Reader& item : items_at(node, field_of(config_fields(), "lcores").value)) {
    config.lcores.push_back(reader.read_lcore(item));
  }
  reader.check_roles(node);
}

void read_stations(const Reader& node, Config& config) {
  if (!node.is_present()) {
    return;
  }
  const std::vector<Reader> items = items_at(node, field_of(config_fields(), "stations").value);
  if (const std::uint32_t most = config.l2.entries / 16; items.size() > most) {
    node.fail(fmt::format("{}, with l2.entries {}", items.size(), config.l2.entries),
              fmt::format("at most {}, or l2.entries of at least {}", most, 16 * items.size()));
  }
  Once<wire::MacAddress> macs;
  for (const Reader& item : items) {
    StationConfig& station = config.stations.emplace_back();
    read_map(station_fields(), item, station);
    const Reader mac = item.at("mac");
    macs.add(station.mac, mac, mac.found(), "each station once");
    check_bridged(item.at("port"), config.ports);
  }
}

void read_tenants(const Reader& node, Config& config) {
  if (!node.is_present()) {
    return;
  }
  Once<std::string> names;
  for (const Reader& item : items_at(node, field_of(config_fields(), "tenants").value)) {
    TenantConfig& tenant = config.tenants.emplace_back();
    read_map(tenant_fields(), item, tenant);
    const Reader name = item.at("name");
    names.add(tenant.name, name, name.found(), "each tenant once");
  }
}

/// Each tenant is one of the list, which is read before.
void read_operators(const Reader& node, Config& config) {
  if (!node.is_present()) {
    return;
  }
  Once<std::string> files;
  for (const Reader& item : items_at(node, field_of(config_fields(), "operators").value)) {
    OperatorConfig& one = config.operators.emplace_back();
    read_map(operator_fields(), item, one);
    const Reader file = item.at("file");
    files.add(one.file, file, file.found(), "each file once");
    for (const std::string& tenant : one.tenants) {
      if (std::ranges::count(config.tenants, tenant, &TenantConfig::name) == 0) {
        item.at("tenants").fail(tenant, "names under tenants:");
      }
    }
  }
}

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

Config load_config(const std::filesystem::path& file) {
  Config config = parse_config(read_file(file), file.string());
  config.file = std::filesystem::absolute(file).string();
  return config;
}

Config parse_config(std::string_view yaml, std::string_view name) {
  const Reader root = Reader::parse(yaml, name);
  Config config = read_config(root);
  read_rings(root, config.ports, config);
  check_members_of_rings(root.at("regions"), config);
  return config;
}

Config parse_config(std::string_view yaml, std::string_view name,
                    const std::vector<PortConfig>& running) {
  const Reader root = Reader::parse(yaml, name);
  Config config = read_config(root);
  check_stations(root.at("stations"), running);
  read_rings(root, running, config);
  check_members_of_rings(root.at("regions"), config);
  return config;
}

std::vector<ring::RingSpec> load_rings(const std::filesystem::path& file, const Config& config) {
  return parse_rings(read_file(file), file.string(), config);
}

std::vector<ring::RingSpec> parse_rings(std::string_view yaml, std::string_view name,
                                        const Config& config) {
  const Reader root = Reader::parse(yaml, name);
  RingsReader reader(config.ports, config.tenants);
  return root.is_list() ? reader.read(root) : reader.read_job(root);
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

std::vector<MemoryOption> memory_options(const std::vector<std::string>& eal_options) {
  constexpr std::string_view letter = "-m";
  std::vector<MemoryOption> found;
  for (std::size_t place = 0; place < eal_options.size(); ++place) {
    const std::string& option = eal_options[place];
    if (option == letter && place + 1 < eal_options.size()) {
      ++place;
      found.push_back({eal_options[place], place});
    } else if (option.starts_with(letter)) {
      found.push_back({std::string_view(option).substr(letter.size()), place});
    }
  }
  return found;
}

std::string_view name_of(Role role) {
  const auto index = static_cast<std::size_t>(role);
  return index < kRoleNames.size() ? kRoleNames[index] : "unknown";
}

} // namespace weir::config
