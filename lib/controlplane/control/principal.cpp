// SPDX-License-Identifier: BSD-3-Clause
#include "control/principal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace weir::control {
namespace {

/// Whether the ring reaches another switch by the port.
bool leads_to_switch(const ring::Ring& ring, std::uint16_t port) {
  for (std::uint16_t sender = 0; sender < ring.senders(); ++sender) {
    if (!ring.is_rank(sender) && ring.port_of(sender) == port) {
      return true;
    }
  }
  return false;
}

/// The id of a ring that is there and does.
std::optional<std::uint32_t> ring_over(const ring::RingSet& present, std::uint16_t port) {
  const std::vector<std::uint16_t> rings = present.present();
  const auto found = std::ranges::find_if(
      rings, [&](std::uint16_t ring) { return leads_to_switch(present.rings()[ring], port); });
  return found == rings.end() ? std::nullopt : std::optional(present.rings()[*found].spec().id);
}

/// Why the port, which is at `place`, counts as one that leads to a switch; empty: it does not.
std::string why_of_switches(const ring::RingSet& present, const config::PortConfig& port,
                            std::uint16_t place) {
  if (const auto other = ring_over(present, place)) {
    return fmt::format("by which ring {} reaches a switch", *other);
  }
  return port.bridge == config::YesNo::no ? "which has bridge: no, as ports between switches have"
                                          : "";
}

} // namespace

void Principal::check_may_order(const ring::RingSpec& ring) const {
  if (!is_operator() && ring.tenant != tenant) {
    throw NotAllowed(fmt::format("ring: found {}, which is not of tenant {}; allowed: its own",
                                 ring.id, tenant));
  }
}

void Principal::check_may_make(const ring::RingSpec& ring, const ring::RingSet& present,
                               const std::vector<config::PortConfig>& ports) const {
  if (is_operator()) {
    return;
  }
  const ring::Ring wanted(ring);
  if (wanted.is_in_tree()) {
    throw NotAllowed(fmt::format("ring {}: found {} for tenant {}; allowed: ranks alone: an "
                                 "operator makes a tenant's ring over several switches",
                                 ring.id, ring.parent ? "a parent" : "a switch among the children",
                                 tenant));
  }
  for (std::uint16_t rank = 0; rank < wanted.children(); ++rank) {
    check_may_name({fmt::format("ring {}: members[{}].port", ring.id, rank), wanted.port_of(rank)},
                   present, ports);
  }
}

void Principal::check_may_name(const NamedPort& port, const ring::RingSet& present,
                               const std::vector<config::PortConfig>& ports) const {
  if (is_operator() || !port.place) {
    return;
  }
  const config::PortConfig& named = ports.at(*port.place);
  if (const std::string why = why_of_switches(present, named, *port.place); !why.empty()) {
    throw NotAllowed(
        fmt::format("{}: found {} for tenant {}, {}; allowed: a port of hosts, or none", port.where,
                    named.name, tenant, why));
  }
}

} // namespace weir::control
