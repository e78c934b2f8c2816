// SPDX-License-Identifier: BSD-3-Clause
#include "events/tree_link_watch.hpp"

#include "events/name_list.hpp"
#include "ring/sender_name.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace weir::events {
namespace {

/// "ring 3", "rings 3, 5 and 12 more".
std::string phrase_for(const std::vector<std::uint32_t>& rings) {
  return fmt::format("ring{} {}", rings.size() == 1 ? "" : "s", list_of(rings));
}

bool is_down(const PortLink& port) {
  return !port.port.empty() && !port.link.starts_with("up");
}

} // namespace

std::map<TreeLinkWatch::End, TreeLinkWatch::Rings>
TreeLinkWatch::ends_of(const ring::RingSet& set, std::span<const PortLink> ports,
                       std::uint64_t down) {
  std::map<End, Rings> ends;
  for (const std::uint16_t index : set.present()) {
    const ring::Ring& ring = set.rings()[index];
    for (std::uint16_t sender = 0; sender < ring.senders(); ++sender) {
      const auto port = ring.is_rank(sender) ? std::nullopt : ring.port_of(sender);
      if (port && (down >> *port & 1) != 0) {
        ends[{ports[*port].port, ring::switch_name_of(ring.spec(), sender), ring.is_parent(sender)}]
            .insert(ring.spec().id);
      }
    }
  }
  return ends;
}

std::vector<Event> TreeLinkWatch::look(const ring::RingSet& set, std::span<const PortLink> ports) {
  std::uint64_t down = 0;
  for (std::size_t place = 0; place < ports.size(); ++place) {
    down |= is_down(ports[place]) ? std::uint64_t{1} << place : 0;
  }
  down &= set.ports_of_switches();
  std::map<End, Rings> dead = down == 0 ? std::map<End, Rings>() : ends_of(set, ports, down);
  std::vector<Event> events;
  tell_down(dead, events);
  tell_up(dead, events);
  told_ = std::move(dead);
  return events;
}

void TreeLinkWatch::tell_down(const std::map<End, Rings>& dead, std::vector<Event>& events) const {
  for (const auto& [end, rings] : dead) {
    const auto told = told_.find(end);
    std::vector<std::uint32_t> news;
    std::ranges::copy_if(rings, std::back_inserter(news), [&](std::uint32_t ring) {
      return told == told_.end() || !told->second.contains(ring);
    });
    if (!news.empty()) {
      events.push_back(
          {EventKind::tree_link_down,
           fmt::format("port {}: no link to {}, the switch {} in the tree of {}; jobs "
                       "wait for it until their hosts' retries end",
                       end.port, end.name, end.is_parent ? "above" : "below", phrase_for(news)),
           {{"port", end.port},
            {"switch", end.name},
            {"rings", fmt::format("{}", fmt::join(news, ","))}}});
    }
  }
}

/// Also for a link whose rings are gone by now.
void TreeLinkWatch::tell_up(const std::map<End, Rings>& dead, std::vector<Event>& events) const {
  for (const auto& [end, rings] : told_) {
    if (!dead.contains(end)) {
      events.push_back(
          {EventKind::tree_link_up,
           fmt::format("port {}: the link to {} is up again, or no ring needs it; there "
                       "was none for {}",
                       end.port, end.name, phrase_for({rings.begin(), rings.end()})),
           {{"port", end.port},
            {"switch", end.name},
            {"rings", fmt::format("{}", fmt::join(rings, ","))}}});
    }
  }
}

} // namespace weir::events
