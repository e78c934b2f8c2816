// SPDX-License-Identifier: BSD-3-Clause
#include "plan/free_links.hpp"

#include "plan/capacity.hpp"

#include <algorithm>

namespace weir::plan {

FreeLinks::FreeLinks(const Topology& topology, std::span<const VertexId> participants)
    : topology_(topology), place_(topology.vertex_count(), kNone),
      gate_(topology.vertex_count(), kNone), exits_(topology.vertex_count()),
      serves_(topology.vertex_count()), capacity_(unit_capacities(topology)),
      came_by_(topology.vertex_count(), kNone), seen_at_(topology.vertex_count()) {
  for (const VertexId node : participants) {
    place_[node] = 0; // until it has one
  }
  give_places();
  sort_exits();
  may_be_spent_ = std::ranges::any_of(participants,
                                      [&](VertexId node) { return exits_[node].onwards.empty(); });
  all_ = Bits(at_place_.size());
  for (std::size_t place = 0; place < at_place_.size(); ++place) {
    all_.set(place);
  }
}

void FreeLinks::give_places() {
  std::vector<bool> has_place(topology_.vertex_count());
  const auto give = [&](VertexId node, LinkId down) {
    has_place[node] = true;
    place_[node] = static_cast<std::uint32_t>(at_place_.size());
    at_place_.push_back(node);
    down_link_.push_back(down);
  };
  for (VertexId at = topology_.node_count(); at < topology_.vertex_count(); ++at) {
    exits_[at].first_place = static_cast<std::uint32_t>(at_place_.size());
    for (const LinkId link : topology_.outgoing(at)) {
      const VertexId to = topology_.link(link).to;
      if (is_participant(to) && !has_place[to] && topology_.outgoing(to).size() == 1) {
        give(to, link);
        gate_[to] = at;
      }
    }
    exits_[at].end_place = static_cast<std::uint32_t>(at_place_.size());
  }
  for (VertexId node = 0; node < topology_.node_count(); ++node) {
    if (is_participant(node) && !has_place[node]) {
      give(node, kNone);
    }
  }
}

void FreeLinks::sort_exits() {
  for (VertexId at = 0; at < topology_.vertex_count(); ++at) {
    for (const LinkId link : topology_.outgoing(at)) {
      const VertexId to = topology_.link(link).to;
      if (!is_participant(to)) {
        if (topology_.passes_on(to)) {
          exits_[at].onwards.push_back(link);
        }
        continue;
      }
      serves_[at] = true;
      if (gate_[to] != at) {
        exits_[at].to_others.push_back(link);
      }
    }
  }
}

void FreeLinks::restore() {
  free_ = capacity_;
  free_out_.assign(topology_.vertex_count(), 0);
  free_in_.assign(topology_.vertex_count(), 0);
  for (LinkId link = 0; link < free_.size(); ++link) {
    free_out_[topology_.link(link).from] += free_[link];
    free_in_[topology_.link(link).to] += free_[link];
  }
  senders_ = receivers_ = open_down_ = all_;
}

VertexId FreeLinks::find_child(VertexId parent, const Bits& has) {
  ++search_;
  offset_ = gate_[parent] == kNone ? 0 : place_[parent] - exits_[gate_[parent]].first_place;
  seen_at_[parent] = search_;
  if (const VertexId child = child_at(parent, has); child != kNone) {
    return child;
  }
  open_.assign(1, parent);
  for (std::size_t next = 0; next < open_.size(); ++next) {
    const VertexId at = open_[next];
    const bool is_near = at == parent || topology_.link(came_by_[at]).from == parent;
    if (serves_[at] && !is_near) {
      continue;
    }
    for (const LinkId link : exits_[at].onwards) {
      const VertexId to = topology_.link(link).to;
      if (free_[link] == 0 || seen_at_[to] == search_) {
        continue;
      }
      seen_at_[to] = search_;
      came_by_[to] = link;
      if (const VertexId child = child_at(to, has); child != kNone) {
        return child; // none is nearer: all vertices before this one have been tried
      }
      open_.push_back(to);
    }
  }
  return kNone;
}

VertexId FreeLinks::child_at(VertexId at, const Bits& has) {
  const Exits& exits = exits_[at];
  // Starts at the parent's place on its own switch. So a parent's children differ from its
  // neighbours' children, and any number of nodes takes N-1 steps, not only a power of two.
  const std::uint32_t start =
      exits.first_place + std::min(offset_, exits.end_place - exits.first_place);
  std::size_t place = open_down_.first_without(has, start, exits.end_place);
  if (place == exits.end_place) {
    const std::size_t before = open_down_.first_without(has, exits.first_place, start);
    place = before == start ? exits.end_place : before;
  }
  if (place != exits.end_place) {
    came_by_[at_place_[place]] = down_link_[place];
    return at_place_[place];
  }
  for (const LinkId link : exits.to_others) {
    const VertexId to = topology_.link(link).to;
    if (free_[link] != 0 && !has.has(place_[to])) {
      came_by_[to] = link;
      return to;
    }
  }
  return kNone;
}

void FreeLinks::take_way(VertexId parent, VertexId child, std::vector<LinkId>& routes) {
  const auto begin = static_cast<std::ptrdiff_t>(routes.size());
  for (VertexId at = child; at != parent; at = topology_.link(came_by_[at]).from) {
    routes.push_back(came_by_[at]);
    use(came_by_[at]);
  }
  std::reverse(routes.begin() + begin, routes.end());
}

void FreeLinks::use(LinkId link) {
  const auto [from, to, traits] = topology_.link(link);
  if (--free_[link] == 0 && is_participant(to) && down_link_[place_[to]] == link) {
    open_down_.clear(place_[to]);
  }
  if (--free_out_[from] == 0 && is_participant(from)) {
    senders_.clear(place_[from]);
  }
  if (--free_in_[to] == 0 && is_participant(to)) {
    receivers_.clear(place_[to]);
  }
}

bool FreeLinks::is_spent(VertexId parent, const Bits& has) const {
  return exits_[parent].onwards.empty() &&
         std::ranges::all_of(exits_[parent].to_others,
                             [&](LinkId link) { return has.has(place_[topology_.link(link).to]); });
}

} // namespace weir::plan
