// SPDX-License-Identifier: BSD-3-Clause
#include "manager/config.hpp"

#include "files/whole_file.hpp"
#include "net/listening_socket.hpp"
#include "plan/node_names.hpp"
#include "plan/port_names.hpp"
#include "plan/topology_file.hpp"
#include "yaml/error.hpp"
#include "yaml/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace weir::manager {
namespace {

using yaml::Reader;

constexpr std::size_t kMostHosts = std::size_t{1} << 16;
constexpr std::uint64_t kMostTrees = 64;
constexpr std::size_t kMostMembers = 64; // of an etcd
constexpr std::string_view kSecure = "https://";
constexpr std::string_view kPlain = "http://";

std::string text_of(const std::filesystem::path& file) {
  const std::optional<std::string> text = files::read_whole(file);
  if (!text) {
    Reader::fail_file(file.string(), "no file that can be read", "a manager's configuration");
  }
  return *text;
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::vector<std::string> names_in(const Reader& list, std::string_view what) {
  std::vector<std::string> names;
  if (list.is_present()) {
    for (const Reader& item : list.items({0, 1024}, what)) {
      names.push_back(item.text("a name"));
    }
  }
  return names;
}

std::uint32_t count_in(const Reader& count) {
  return count.is_present() ? static_cast<std::uint32_t>(count.whole_number({0, 1'000'000}))
                            : UINT32_MAX;
}

jobs::Tenant read_tenant(const Reader& map) {
  constexpr std::array<std::string_view, 4> keys{"name", "hosts", "jobs", "rings"};
  map.expect_map(keys);
  jobs::Tenant tenant{.name = map.at("name").text("the common name of its certificates"),
                      .hosts = {},
                      .jobs = count_in(map.at("jobs")),
                      .rings = count_in(map.at("rings"))};
  for (const std::string& pattern : names_in(map.at("hosts"), "hosts")) {
    const auto names = plan::expand_names(pattern, kMostHosts);
    if (!names) {
      map.at("hosts").fail(yaml::in_quotes(pattern), "names as host[0-7]");
    }
    tenant.hosts.insert(tenant.hosts.end(), names->begin(), names->end());
  }
  return tenant;
}

std::optional<TlsFiles> read_tls(const Reader& map) {
  if (!map.is_present()) {
    return std::nullopt;
  }
  constexpr std::array<std::string_view, 4> keys{"certificate", "key", "client_authority",
                                                 "switch_authority"};
  map.expect_map(keys);
  return TlsFiles{map.at(keys[0]).text("a PEM file"), map.at(keys[1]).text("a PEM file"),
                  map.at(keys[2]).text("a PEM file"), map.at(keys[3]).text("a PEM file")};
}

/// What is between the scheme and the port.
std::string host_of(std::string_view url, std::string_view scheme) {
  const std::string_view place = url.substr(scheme.size());
  return std::string(place.substr(0, place.rfind(':')));
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

/// Ends in a port, and has nothing behind it.
bool has_port(std::string_view url, std::string_view scheme) {
  const std::string_view place = url.substr(scheme.size());
  const std::size_t colon = place.rfind(':');
  return colon != std::string_view::npos && colon != 0 && colon + 1 != place.size() &&
         place.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
}

void check_url(const Reader& servers, const std::string& url, std::string_view scheme) {
  if (!url.starts_with(scheme) || !has_port(url, scheme)) {
    servers.fail(yaml::in_quotes(url),
                 "https://ADDRESS:PORT of each member, or all of them http://ADDRESS:PORT on "
                 "loopback");
  }
  if (scheme == kPlain && !is_loopback(host_of(url, scheme))) {
    servers.fail(yaml::in_quotes(url),
                 "http:// on loopback alone, for a laboratory; https:// elsewhere");
  }
}

EtcdFiles read_etcd(const Reader& store) {
  const Reader servers = store.at("etcd");
  EtcdFiles etcd{.servers = {}, .certificate = {}, .key = {}, .authority = {}};
  for (const Reader& server : servers.items({1, kMostMembers}, "members of an etcd")) {
    etcd.servers.push_back(server.text("https://ADDRESS:PORT"));
  }
  const bool is_plain = etcd.servers.front().starts_with(kPlain);
  for (const std::string& url : etcd.servers) {
    check_url(servers, url, is_plain ? kPlain : kSecure);
  }
  for (const auto& [name, file] :
       {std::pair("certificate", &etcd.certificate), std::pair("key", &etcd.key),
        std::pair("authority", &etcd.authority)}) {
    if (is_plain && store.at(name).is_present()) {
      store.at(name).fail("a file for http://", "it beside https:// alone");
    }
    if (!is_plain) {
      *file = store.at(name).text("a PEM file, for https://");
    }
  }
  return etcd;
}

/// One of SQLite and etcd.
void read_store(const Reader& root, Config& config) {
  const Reader store = root.at("store");
  constexpr std::array<std::string_view, 5> keys{"sqlite", "etcd", "certificate", "key",
                                                 "authority"};
  store.expect_map(keys);
  const bool has_etcd = store.at("etcd").is_present();
  for (const std::string_view name : std::span(keys).subspan(2)) {
    if (!has_etcd && store.at(name).is_present()) {
      store.at(name).fail("a file without etcd", "it beside etcd alone");
    }
  }
  if (!has_etcd) {
    config.sqlite = store.at("sqlite").text("a file on a local disk, or etcd: in its place");
    return;
  }
  if (store.at("sqlite").is_present()) {
    store.fail("both sqlite and etcd", "one of them");
  }
  config.etcd = read_etcd(store);
  const std::string fabric = root.at("fabric").text("the fabric's name");
  if (fabric.find('/') != std::string::npos) {
    root.at("fabric").fail(yaml::in_quotes(fabric), "a name without '/', which parts etcd's keys");
  }
}

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& found,
                       std::string_view allowed) {
  Reader::fail_file(file.string(), found, allowed);
}

/// Where each host's addresses are: the rail's number is that of the cable.
void read_endpoints(jobs::Site& site, const std::filesystem::path& file) {
  const plan::Topology& topology = site.topology();
  for (plan::VertexId host = 0; host < topology.node_count(); ++host) {
    const std::vector<std::string> addresses = topology.addresses(host);
    const auto cables = topology.outgoing(host);
    if (addresses.empty() || addresses.size() > cables.size()) {
      fail(file,
           fmt::format("{} with {} addresses and {} cables", topology.name(host), addresses.size(),
                       cables.size()),
           "hosts with an address for each cable: { name: host0, address: [10.0.0.1] }");
    }
    for (std::size_t rail = 0; rail < addresses.size(); ++rail) {
      const auto ip = wire::parse_ip(addresses[rail]);
      const plan::VertexId at = topology.link(cables[rail]).to;
      if (!ip) {
        fail(file, fmt::format("the address {} of {}", addresses[rail], topology.name(host)),
             "an IPv4 or IPv6 address");
      }
      if (topology.is_node(at)) {
        fail(file,
             fmt::format("a cable of {} to the host {}", topology.name(host), topology.name(at)),
             "hosts on switches");
      }
      const jobs::Endpoint endpoint{
          host, {site.index().switch_at(at), plan::Topology::reverse_of(cables[rail])}};
      const auto [before, is_new] = site.endpoints.emplace(*ip, endpoint);
      if (!is_new) {
        fail(file,
             fmt::format("the address {} of both {} and {}", addresses[rail],
                         topology.name(before->second.host), topology.name(host)),
             "each address once");
      }
    }
  }
}

void read_switches(jobs::Site& site, const std::filesystem::path& file) {
  const plan::Topology& topology = site.topology();
  site.ports.resize(topology.links().size());
  for (jobs::SwitchIndex at = 0; at < site.index().switches(); ++at) {
    const plan::VertexId vertex = site.index().vertex_of(at);
    const std::vector<std::string> control = topology.addresses(vertex);
    if (control.size() != 1) {
      fail(file,
           fmt::format("{} without the address of its control service", topology.name(vertex)),
           "{ name: leaf0, control: \"192.0.2.1:9465\" }");
    }
    site.control.push_back(control.front());
    try {
      const plan::Ports ports(topology, vertex);
      for (const plan::LinkId link : ports.links()) {
        site.ports[link] = ports.name(link);
      }
    } catch (const plan::PlanError& error) {
      fail(file, error.what(), "ports that a switch can have");
    }
  }
}

void check_numbers(const Reader& root, const std::string& address) {
  try {
    net::check_address(address);
  } catch (const net::ListenError&) {
    root.at("listen").fail(
        yaml::in_quotes(address),
        "ADDRESS:PORT in numbers, such as 192.0.2.10:9470 or [2001:db8::1]:9470");
  }
}

void check_listeners(const Reader& root, const Config& config) {
  for (const std::string& address : config.listen) {
    if (!address.starts_with("unix:/") && !config.tls) {
      root.at("listen").fail(yaml::in_quotes(address),
                             "unix:/PATH, or ADDRESS:PORT with tls: beside it");
    }
    if (!address.starts_with("unix:/")) {
      check_numbers(root, address);
    }
  }
  for (const std::string& address : config.site.control) {
    if (!address.starts_with("unix:/") && !config.tls) {
      root.at("topology")
          .fail(fmt::format("a switch at {}", yaml::in_quotes(address)),
                "unix:/PATH, or ADDRESS:PORT with tls: in this file");
    }
  }
}

void check_tenants(const Reader& root, const jobs::Site& site) {
  for (const jobs::Tenant& tenant : site.tenants) {
    for (const std::string& host : tenant.hosts) {
      const plan::VertexId vertex = site.topology().find(host);
      if (vertex == plan::kNone || !site.topology().is_node(vertex)) {
        root.at("tenants").fail(
            fmt::format("the host {} of tenant {}", yaml::in_quotes(host), tenant.name),
            "hosts of the topology");
      }
    }
  }
}

/// They may do no more than grant and end: not by another list, and not as a host, to which tokens
/// are issued.
void check_schedulers(const Reader& root, const Config& config) {
  for (const std::string& name : config.schedulers) {
    const bool is_operator = std::ranges::find(config.operators, name) != config.operators.end();
    const bool is_tenant = std::ranges::find(config.site.tenants, name, &jobs::Tenant::name) !=
                           config.site.tenants.end();
    const plan::VertexId vertex = config.site.topology().find(name);
    const bool is_host = vertex != plan::kNone && config.site.topology().is_node(vertex);
    if (name.empty() || is_operator || is_tenant || is_host) {
      root.at("schedulers")
          .fail(yaml::in_quotes(name) + (is_operator ? ", who is under operators"
                                         : is_tenant ? ", who is under tenants"
                                         : is_host   ? ", which is a host"
                                                     : ""),
                "common names that nobody else has");
    }
  }
}

} // namespace

/// Switches keep it beside its term, on a line.
std::string name_of(const Reader& root) {
  if (!root.at("name").is_present()) {
    return host_name();
  }
  std::string name = root.at("name").text("a name");
  if (name.find_first_of(" \t\n") != std::string::npos) {
    root.at("name").fail(yaml::in_quotes(name), "a name without blanks");
  }
  return name;
}

Config load_config(const std::filesystem::path& file) {
  const Reader root = Reader::parse(text_of(file), file.string());
  constexpr std::array<std::string_view, 11> keys{"fabric",     "name",     "listen", "tls",
                                                  "store",      "topology", "trees",  "operators",
                                                  "schedulers", "tenants",  "metrics"};
  root.expect_map(keys);
  const std::filesystem::path topology =
      file.parent_path() / root.at("topology").text("the topology's file");
  Config config{.name = name_of(root),
                .listen = names_in(root.at("listen"), "addresses"),
                .tls = read_tls(root.at("tls")),
                .sqlite = {},
                .etcd = {},
                .operators = names_in(root.at("operators"), "names"),
                .schedulers = names_in(root.at("schedulers"), "names"),
                .metrics = {},
                .site = jobs::Site(plan::load_topology(topology))};
  read_store(root, config);
  if (root.at("metrics").is_present()) {
    constexpr std::array<std::string_view, 1> metrics_keys{"listen"};
    root.at("metrics").expect_map(metrics_keys);
    config.metrics = root.at("metrics").at("listen").text("ADDRESS:PORT");
  }
  jobs::Site& site = config.site;
  site.fabric = root.at("fabric").text("the fabric's name, as its switches have it");
  if (root.at("trees").is_present()) {
    site.trees = static_cast<std::uint32_t>(root.at("trees").whole_number({1, kMostTrees}));
  }
  if (root.at("tenants").is_present()) {
    for (const Reader& tenant : root.at("tenants").items({0, 1024}, "tenants")) {
      site.tenants.push_back(read_tenant(tenant));
    }
  }
  read_endpoints(site, topology);
  read_switches(site, topology);
  check_listeners(root, config);
  check_tenants(root, site);
  check_schedulers(root, config);
  return config;
}

} // namespace weir::manager
