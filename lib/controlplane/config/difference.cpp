// SPDX-License-Identifier: BSD-3-Clause
#include "config/difference.hpp"

#include "config/fields.hpp"
#include "config/lists.hpp"
#include "config/ring_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace weir::config {
namespace {

/// A part of a configuration. A ring's members name ports by their numbers there.
template <typename T>
struct In {
  const Config& config;
  const T& value;
};

std::string in_words(const std::vector<Role>& roles) {
  return in_words(field_of(lcore_fields(), "roles").value, roles);
}

/// `above` is what stands before the leaf's path: "rings[7]."
template <typename T>
void add_if_changed(const Leaf<T>& leaf, const std::string& above, const In<T>& from,
                    const In<T>& to, std::vector<Change>& changes) {
  std::string before = leaf.words(from.value, from.config);
  std::string after = leaf.words(to.value, to.config);
  if (before != after) {
    changes.push_back({above + leaf.path, std::move(before), std::move(after), leaf.effect});
  }
}

template <typename T>
void compare(const Fields<T>& fields, const std::string& above, const In<T>& from, const In<T>& to,
             std::vector<Change>& changes) {
  for (const Field<T>& field : fields) {
    for (const Leaf<T>& leaf : field.leaves) {
      add_if_changed(leaf, above, from, to, changes);
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

/// How a list's entries are compared: by their keys, and one that comes or goes as a whole.
template <typename Entry>
struct EntriesOf {
  const Fields<Entry>& fields;
  std::string (*place)(const Entry&); // "ports[p0]"
  std::string (*words)(const Entry&); // what it is
  Effect goes = Effect::restart;
  Effect comes = Effect::restart;
};

template <typename Entry, typename Name>
void compare_entries(const EntriesOf<Entry>& kind, const Lists<Entry, Name>& lists,
                     const Config& from, const Config& to, std::vector<Change>& changes) {
  lists.visit(
      [&](const Entry& entry) {
        changes.push_back({kind.place(entry), kind.words(entry), std::string(kNothing), kind.goes});
      },
      [&](const Entry& before, const Entry& after) {
        compare<Entry>(kind.fields, kind.place(before) + ".", {from, before}, {to, after}, changes);
      },
      [&](const Entry& entry) {
        changes.push_back(
            {kind.place(entry), std::string(kNothing), kind.words(entry), kind.comes});
      });
}

/// Without the places that have none.
std::vector<PortConfig> ports_of(const Config& config) {
  std::vector<PortConfig> ports = config.ports;
  std::erase_if(ports, [](const PortConfig& port) { return !port.is_there(); });
  return ports;
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

void compare_members(const In<ring::RingSpec>& from, const In<ring::RingSpec>& to,
                     std::vector<Change>& changes) {
  const std::string above = place_of(from.value) + ".members";
  if (from.value.members.size() != to.value.members.size()) {
    changes.push_back(
        {above, addresses_of(from.value), addresses_of(to.value), Effect::ring_made_anew});
    return;
  }
  for (std::size_t rank = 0; rank < from.value.members.size(); ++rank) {
    compare<ring::Member>(member_fields(), fmt::format("{}[{}].", above, rank),
                          {from.config, from.value.members[rank]},
                          {to.config, to.value.members[rank]}, changes);
  }
}

/// A rank's cable may move to another port, as a member's. Where another switch is, no packet may
/// come from anywhere else, so its ring is made anew.
void compare_child(const std::string& above, const In<ring::Child>& from, const In<ring::Child>& to,
                   std::vector<Change>& changes) {
  const std::size_t known = changes.size();
  compare<ring::Child>(child_fields(), above, from, to, changes);
  for (Change& change : std::span(changes).subspan(known)) {
    if (from.value.kind == ring::ChildKind::switch_below && change.place.ends_with(".port")) {
      change.effect = Effect::ring_made_anew;
    }
  }
}

void compare_children(const In<ring::RingSpec>& from, const In<ring::RingSpec>& to,
                      std::vector<Change>& changes) {
  const std::string above = place_of(from.value) + ".children";
  std::string before = children_in_words(from.value);
  std::string after = children_in_words(to.value);
  if (before != after) {
    changes.push_back({above, std::move(before), std::move(after), Effect::ring_made_anew});
    return;
  }
  for (std::size_t i = 0; i < from.value.children.size(); ++i) {
    compare_child(fmt::format("{}[{}].", above, i), {from.config, from.value.children[i]},
                  {to.config, to.value.children[i]}, changes);
  }
}

void compare_ring(const In<ring::RingSpec>& from, const In<ring::RingSpec>& to,
                  std::vector<Change>& changes) {
  const std::size_t known = changes.size();
  compare<ring::RingSpec>(ring_fields(), place_of(from.value) + ".", from, to, changes);
  compare_members(from, to, changes);
  compare_children(from, to, changes);
  for (Change& change : std::span(changes).subspan(known)) {
    change.ring = from.value.id;
  }
}

} // namespace

void compare_ports(const Config& from, const Config& to, std::vector<Change>& changes) {
  const bool is_fixed = from.spare.ports == 0;
  const std::vector<PortConfig> before = ports_of(from);
  compare_entries(
      EntriesOf<PortConfig>{
          .fields = port_fields(),
          .place = [](const PortConfig& port) { return fmt::format("ports[{}]", port.name); },
          .words = [](const PortConfig& port) { return port.device; },
          .goes = is_fixed ? Effect::restart : Effect::port_closed,
          .comes = is_fixed ? Effect::restart : Effect::port_opened},
      Lists{before, to.ports, &PortConfig::name}, from, to, changes);
}

void compare_lcores(const Config& from, const Config& to, std::vector<Change>& changes) {
  if (from.lcores_by == LcoresBy::the_switch && to.lcores_by == LcoresBy::the_switch) {
    return; // it has chosen when it started
  }
  compare_entries(
      EntriesOf<LcoreConfig>{
          .fields = lcore_fields(),
          .place = [](const LcoreConfig& lcore) { return fmt::format("lcores[{}]", lcore.id); },
          .words = [](const LcoreConfig& lcore) { return in_words(lcore.roles); }},
      Lists{from.lcores, to.lcores, &LcoreConfig::id}, from, to, changes);
}

void compare_stations(const Config& from, const Config& to, std::vector<Change>& changes) {
  compare_entries(EntriesOf<StationConfig>{
                      .fields = station_fields(),
                      .place =
                          [](const StationConfig& station) {
                            return fmt::format("stations[{}]", wire::to_string(station.mac));
                          },
                      .words = [](const StationConfig& station) { return station.port; },
                      .goes = Effect::in_place,
                      .comes = Effect::in_place},
                  Lists{from.stations, to.stations, &StationConfig::mac}, from, to, changes);
}

void compare_tenants(const Config& from, const Config& to, std::vector<Change>& changes) {
  compare_entries(
      EntriesOf<TenantConfig>{
          .fields = tenant_fields(),
          .place =
              [](const TenantConfig& tenant) { return fmt::format("tenants[{}]", tenant.name); },
          .words = [](const TenantConfig& tenant) { return tenant.name; }},
      Lists{from.tenants, to.tenants, &TenantConfig::name}, from, to, changes);
}

void compare_operators(const Config& from, const Config& to, std::vector<Change>& changes) {
  compare_entries(
      EntriesOf<OperatorConfig>{
          .fields = operator_fields(),
          .place = [](const OperatorConfig& one) { return fmt::format("operators[{}]", one.file); },
          .words = [](const OperatorConfig& one) { return one.file; }},
      Lists{from.operators, to.operators, &OperatorConfig::file}, from, to, changes);
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

std::string addresses_of(const ControlConfig& control) {
  std::vector<std::string> addresses = control.remote;
  for (const std::string& path : control.local) {
    addresses.push_back("unix:" + path);
  }
  std::ranges::sort(addresses);
  return control.is_default ? std::string(kNothing)
                            : fmt::format("[{}]", fmt::join(addresses, " "));
}

std::vector<Change> difference(const Config& from, const Config& to) {
  std::vector<Change> changes;
  for (const Field<Config>& field : config_fields()) {
    if (field.compare) {
      field.compare(from, to, changes);
    }
    for (const Leaf<Config>& leaf : field.leaves) {
      add_if_changed(leaf, "", In<Config>{from, from}, In<Config>{to, to}, changes);
    }
  }
  return changes;
}

Config changed_in_place(Config running, const Config& wanted) {
  take_in_place(config_fields(), running, wanted);
  for (PortConfig& port : running.ports) {
    const auto same = std::ranges::find(wanted.ports, port.name, &PortConfig::name);
    if (same != wanted.ports.end()) {
      take_in_place(port_fields(), port, *same);
    }
  }
  return running;
}

} // namespace weir::config
