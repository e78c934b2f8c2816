// SPDX-License-Identifier: BSD-3-Clause
#include "config/difference.hpp"

#include "config/keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

namespace weir::config {
namespace {

constexpr std::string_view kNothing = "-";

/// One key of a T: what it says, in words in which two values differ if they are not the same.
template <typename T>
struct Row {
  std::string_view key;
  std::string (*text)(const T& of);
  Effect effect; // of a change
};

/// A ring's members name ports by their numbers in the configuration.
struct RingIn {
  const Config& config;
  const ring::RingSpec& ring;
};

struct MemberIn {
  const Config& config;
  const ring::Member& member;
};

template <typename T, auto member>
std::string number(const T& of) {
  return fmt::format("{}", of.*member);
}

template <auto member>
std::string ring_number(const RingIn& of) {
  return fmt::format("{}", of.ring.*member);
}

std::string or_nothing(const std::string& text) {
  return text.empty() ? std::string(kNothing) : text;
}

template <typename List>
std::string joined(const List& list) {
  return or_nothing(fmt::format("{}", fmt::join(list, " ")));
}

std::string macs_of(const PortConfig& port) {
  std::vector<std::string> macs;
  for (const wire::MacAddress& mac : port.macs) {
    macs.push_back(wire::to_string(mac));
  }
  std::ranges::sort(macs);
  return joined(macs);
}

std::string roles_of(const LcoreConfig& lcore) {
  std::vector<std::string_view> roles;
  for (const Role role : lcore.roles) {
    roles.push_back(name_of(role));
  }
  std::ranges::sort(roles);
  return joined(roles);
}

std::string addresses_of(const ControlConfig& control) {
  std::vector<std::string> addresses = control.remote;
  for (const std::string& path : control.local) {
    addresses.push_back("unix:" + path);
  }
  std::ranges::sort(addresses);
  return control.is_default ? std::string(kNothing)
                            : fmt::format("[{}]", fmt::join(addresses, " "));
}

template <std::string TlsFiles::*file>
std::string tls_file(const Config& config) {
  return config.control.tls ? (*config.control.tls).*file : std::string(kNothing);
}

std::string name_of_port(const Config& config, const ring::Member& member) {
  return member.port ? config.ports[*member.port].name : std::string(kNothing);
}

// Every key is in one of these tables, or names the entries of a list. A test compares them with
// the table of keys.

constexpr std::array kEal{
    Row<Config>{"eal.options", [](const Config& c) { return joined(c.eal_options); },
                Effect::restart},
};

constexpr std::array kOfPort{
    Row<PortConfig>{"device", [](const PortConfig& p) { return p.device; }, Effect::restart},
    Row<PortConfig>{"macs", macs_of, Effect::in_place}, // the switch does not read them
    Row<PortConfig>{"rx_queues", number<PortConfig, &PortConfig::rx_queues>, Effect::restart},
    Row<PortConfig>{"rx_steering",
                    [](const PortConfig& p) {
                      return std::string(kRxSteeringNames[static_cast<std::size_t>(p.rx_steering)]);
                    },
                    Effect::restart},
    Row<PortConfig>{"mtu", number<PortConfig, &PortConfig::mtu>, Effect::restart},
    Row<PortConfig>{"rx_descriptors", number<PortConfig, &PortConfig::rx_descriptors>,
                    Effect::restart},
    Row<PortConfig>{"tx_descriptors", number<PortConfig, &PortConfig::tx_descriptors>,
                    Effect::restart},
    Row<PortConfig>{"outer_tag",
                    [](const PortConfig& p) {
                      return std::string(
                          kOuterTagNames[p.outer_tag == wire::EtherType::vlan ? 0 : 1]);
                    },
                    Effect::restart},
};

constexpr std::array kOfLcore{
    Row<LcoreConfig>{"roles", roles_of, Effect::restart},
    Row<LcoreConfig>{"idle",
                     [](const LcoreConfig& l) {
                       return std::string(kIdleNames[static_cast<std::size_t>(l.idle)]);
                     },
                     Effect::restart},
};

constexpr std::array kOfSwitch{
    Row<Config>{"l2.aging_s", [](const Config& c) { return fmt::format("{}", c.l2.aging_s); },
                Effect::in_place},
    Row<Config>{"l2.entries", [](const Config& c) { return fmt::format("{}", c.l2.entries); },
                Effect::restart},
    Row<Config>{"connections.plain_entries",
                [](const Config& c) { return fmt::format("{}", c.connections.plain_entries); },
                Effect::restart},
    Row<Config>{"connections.aging_s",
                [](const Config& c) { return fmt::format("{}", c.connections.aging_s); },
                Effect::in_place},
    Row<Config>{"metrics.listen", [](const Config& c) { return or_nothing(c.metrics.listen); },
                Effect::restart},
    Row<Config>{"control.listen", [](const Config& c) { return addresses_of(c.control); },
                Effect::restart},
    Row<Config>{"control.tls.certificate", tls_file<&TlsFiles::certificate>, Effect::restart},
    Row<Config>{"control.tls.key", tls_file<&TlsFiles::key>, Effect::restart},
    Row<Config>{"control.tls.client_authority", tls_file<&TlsFiles::client_authority>,
                Effect::restart},
    Row<Config>{"spare.rings", [](const Config& c) { return fmt::format("{}", c.spare.rings); },
                Effect::restart},
    Row<Config>{"spare.members", [](const Config& c) { return fmt::format("{}", c.spare.members); },
                Effect::restart},
    Row<Config>{"spare.frames", [](const Config& c) { return fmt::format("{}", c.spare.frames); },
                Effect::restart},
    Row<Config>{"spare.ports", [](const Config& c) { return fmt::format("{}", c.spare.ports); },
                Effect::restart},
    Row<Config>{"control.operators",
                [](const Config& c) {
                  return c.control.operators ? joined(*c.control.operators) : std::string(kNothing);
                },
                Effect::restart},
    Row<Config>{"drain_s", [](const Config& c) { return fmt::format("{}", c.drain_s); },
                Effect::in_place},
    Row<Config>{"state_directory", [](const Config& c) { return or_nothing(c.state_directory); },
                Effect::restart},
};

/// A limit that is absent is none.
template <auto limit>
std::string limit_of(const TenantConfig& tenant) {
  return tenant.*limit ? fmt::format("{}", *(tenant.*limit)) : std::string(kNothing);
}

std::string sorted_hosts(const TenantConfig& tenant) {
  std::vector<std::string> blocks = hosts_of(tenant);
  std::ranges::sort(blocks);
  return joined(blocks);
}

constexpr std::array kOfTenant{
    Row<TenantConfig>{"rings", limit_of<&TenantConfig::rings>, Effect::restart},
    Row<TenantConfig>{"memory_mib", limit_of<&TenantConfig::memory_mib>, Effect::restart},
    Row<TenantConfig>{"neighbours", limit_of<&TenantConfig::neighbours>, Effect::restart},
    Row<TenantConfig>{"packets_per_second", limit_of<&TenantConfig::packets_per_second>,
                      Effect::restart},
    Row<TenantConfig>{"hosts", sorted_hosts, Effect::restart},
};

constexpr std::array kOfRing{
    Row<RingIn>{"window", ring_number<&ring::RingSpec::window>, Effect::ring_made_anew},
    Row<RingIn>{"max_message_bytes", ring_number<&ring::RingSpec::max_message_bytes>,
                Effect::ring_made_anew},
    Row<RingIn>{"mtu", ring_number<&ring::RingSpec::mtu>, Effect::ring_made_anew},
    Row<RingIn>{"patience",
                [](const RingIn& r) { return fmt::format("{}", r.ring.patience_ms / 1000); },
                Effect::in_place},
    Row<RingIn>{"lease", [](const RingIn& r) { return fmt::format("{}", r.ring.lease_ms / 1000); },
                Effect::in_place},
    Row<RingIn>{"tenant", [](const RingIn& r) { return or_nothing(r.ring.tenant); },
                Effect::ring_made_anew},
    Row<RingIn>{"keep_alive",
                [](const RingIn& r) {
                  return std::string(kKeepAliveNames[static_cast<std::size_t>(r.ring.keep_alive)]);
                },
                Effect::in_place},
};

constexpr std::array kOfMember{
    Row<MemberIn>{"ip", [](const MemberIn& m) { return wire::to_string(m.member.ip); },
                  Effect::ring_made_anew},
    Row<MemberIn>{"port", [](const MemberIn& m) { return name_of_port(m.config, m.member); },
                  Effect::in_place},
};

/// "rings[7].", or nothing for keys whose rows have the whole path.
template <typename T>
void compare(std::span<const Row<T>> rows, const std::string& above, const T& from, const T& to,
             std::vector<Change>& changes) {
  for (const Row<T>& row : rows) {
    std::string before = row.text(from);
    std::string after = row.text(to);
    if (before != after) {
      changes.push_back(
          {fmt::format("{}{}", above, row.key), std::move(before), std::move(after), row.effect});
    }
  }
}

/// Entries of a list, found again by what names them.
template <typename Entry, typename Name>
struct Lists {
  const std::vector<Entry>& from;
  const std::vector<Entry>& to;
  Name name; // a member of Entry

  static const Entry* find(const std::vector<Entry>& list, const Entry& other, Name name) {
    const auto found = std::ranges::find(list, other.*name, name);
    return found == list.end() ? nullptr : &*found;
  }

  /// Calls gone(entry), stays(entry before, entry after) and comes(entry).
  template <typename Gone, typename Stays, typename Comes>
  void visit(Gone&& gone, Stays&& stays, Comes&& comes) const {
    for (const Entry& before : from) {
      if (const Entry* after = find(to, before, name)) {
        stays(before, *after);
      } else {
        gone(before);
      }
    }
    for (const Entry& after : to) {
      if (find(from, after, name) == nullptr) {
        comes(after);
      }
    }
  }
};

template <typename Entry, typename Name>
Lists(const std::vector<Entry>&, const std::vector<Entry>&, Name) -> Lists<Entry, Name>;

/// Without the places that have none.
std::vector<PortConfig> ports_of(const Config& config) {
  std::vector<PortConfig> ports = config.ports;
  std::erase_if(ports, [](const PortConfig& port) { return !port.is_there(); });
  return ports;
}

void compare_ports(const Config& from, const Config& to, std::vector<Change>& changes) {
  const bool is_fixed = from.spare.ports == 0;
  const Effect goes = is_fixed ? Effect::restart : Effect::port_closed;
  const Effect comes = is_fixed ? Effect::restart : Effect::port_opened;
  const auto place = [](const PortConfig& port) { return fmt::format("ports[{}]", port.name); };
  const std::vector<PortConfig> before = ports_of(from);
  Lists{before, to.ports, &PortConfig::name}.visit(
      [&](const PortConfig& port) {
        changes.push_back({place(port), port.device, std::string(kNothing), goes});
      },
      [&](const PortConfig& running, const PortConfig& wanted) {
        compare<PortConfig>(kOfPort, place(running) + ".", running, wanted, changes);
      },
      [&](const PortConfig& port) {
        changes.push_back({place(port), std::string(kNothing), port.device, comes});
      });
}

void compare_lcores(const Config& from, const Config& to, std::vector<Change>& changes) {
  const auto place = [](const LcoreConfig& lcore) { return fmt::format("lcores[{}]", lcore.id); };
  Lists{from.lcores, to.lcores, &LcoreConfig::id}.visit(
      [&](const LcoreConfig& lcore) {
        changes.push_back({place(lcore), roles_of(lcore), std::string(kNothing), Effect::restart});
      },
      [&](const LcoreConfig& before, const LcoreConfig& after) {
        compare<LcoreConfig>(kOfLcore, place(before) + ".", before, after, changes);
      },
      [&](const LcoreConfig& lcore) {
        changes.push_back({place(lcore), std::string(kNothing), roles_of(lcore), Effect::restart});
      });
}

void compare_tenants(const Config& from, const Config& to, std::vector<Change>& changes) {
  const auto place = [](const TenantConfig& tenant) {
    return fmt::format("tenants[{}]", tenant.name);
  };
  Lists{from.tenants, to.tenants, &TenantConfig::name}.visit(
      [&](const TenantConfig& tenant) {
        changes.push_back({place(tenant), tenant.name, std::string(kNothing), Effect::restart});
      },
      [&](const TenantConfig& before, const TenantConfig& after) {
        compare<TenantConfig>(kOfTenant, place(before) + ".", before, after, changes);
      },
      [&](const TenantConfig& tenant) {
        changes.push_back({place(tenant), std::string(kNothing), tenant.name, Effect::restart});
      });
}

std::string place_of(const ring::RingSpec& ring) {
  return fmt::format("rings[{}]", ring.id);
}

std::string in_words(const ring::RingSpec& ring) {
  return fmt::format("{} members, window {}, {} bytes", ring.members.size(), ring.window,
                     ring.max_message_bytes);
}

std::string addresses_of(const ring::RingSpec& ring) {
  std::vector<std::string> addresses;
  for (const ring::Member& member : ring.members) {
    addresses.push_back(wire::to_string(member.ip));
  }
  return joined(addresses);
}

void compare_members(const RingIn& from, const RingIn& to, std::vector<Change>& changes) {
  const std::string above = place_of(from.ring) + ".members";
  if (from.ring.members.size() != to.ring.members.size()) {
    changes.push_back(
        {above, addresses_of(from.ring), addresses_of(to.ring), Effect::ring_made_anew});
    return;
  }
  for (std::size_t rank = 0; rank < from.ring.members.size(); ++rank) {
    compare<MemberIn>(kOfMember, fmt::format("{}[{}].", above, rank),
                      {from.config, from.ring.members[rank]}, {to.config, to.ring.members[rank]},
                      changes);
  }
}

void compare_ring(const RingIn& from, const RingIn& to, std::vector<Change>& changes) {
  const std::size_t known = changes.size();
  compare<RingIn>(kOfRing, place_of(from.ring) + ".", from, to, changes);
  compare_members(from, to, changes);
  for (Change& change : std::span(changes).subspan(known)) {
    change.ring = from.ring.id;
  }
}

void compare_rings(const Config& from, const Config& to, std::vector<Change>& changes) {
  Lists{from.rings, to.rings, &ring::RingSpec::id}.visit(
      [&](const ring::RingSpec& ring) {
        changes.push_back({place_of(ring), in_words(ring), std::string(kNothing),
                           Effect::ring_withdrawn, ring.id});
      },
      [&](const ring::RingSpec& before, const ring::RingSpec& after) {
        compare_ring({from, before}, {to, after}, changes);
      },
      [&](const ring::RingSpec& ring) {
        changes.push_back(
            {place_of(ring), std::string(kNothing), in_words(ring), Effect::ring_made, ring.id});
      });
}

} // namespace

std::string_view name_of(Effect effect) {
  switch (effect) {
  case Effect::in_place:
    return "in_place";
  case Effect::port_opened:
    return "port_opened";
  case Effect::port_closed:
    return "port_closed";
  case Effect::ring_kept:
    return "ring_kept";
  case Effect::ring_made:
    return "ring_made";
  case Effect::ring_withdrawn:
    return "ring_withdrawn";
  case Effect::ring_made_anew:
    return "ring_made_anew";
  case Effect::restart:
    return "restart";
  }
  return "unknown";
}

std::string_view text_of(Effect effect) {
  switch (effect) {
  case Effect::in_place:
    return "no job notices";
  case Effect::port_opened:
    return "the port is opened";
  case Effect::port_closed:
    return "the port is closed";
  case Effect::ring_kept:
    return "the ring made at run time is kept; it is the file's from now on";
  case Effect::ring_made:
    return "the ring is made";
  case Effect::ring_withdrawn:
    return "the ring is withdrawn; its job ends";
  case Effect::ring_made_anew:
    return "the ring is withdrawn and made anew; its job ends";
  case Effect::restart:
    return "takes a restart";
  }
  return "unknown";
}

std::vector<Change> difference(const Config& from, const Config& to) {
  std::vector<Change> changes;
  compare<Config>(kEal, "", from, to, changes);
  compare_ports(from, to, changes);
  compare_lcores(from, to, changes);
  compare<Config>(kOfSwitch, "", from, to, changes);
  compare_tenants(from, to, changes);
  compare_rings(from, to, changes);
  return changes;
}

Config changed_in_place(Config running, const Config& wanted) {
  running.l2.aging_s = wanted.l2.aging_s;
  running.connections.aging_s = wanted.connections.aging_s;
  running.drain_s = wanted.drain_s;
  for (PortConfig& port : running.ports) {
    const auto same = std::ranges::find(wanted.ports, port.name, &PortConfig::name);
    if (same != wanted.ports.end()) {
      port.macs = same->macs;
    }
  }
  return running;
}

} // namespace weir::config
