// SPDX-License-Identifier: BSD-3-Clause
#include "plan/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weir::plan {
namespace {

void require_rate(const LinkTraits& traits, std::string_view a, std::string_view b) {
  if (traits.bits_per_second == 0) {
    throw PlanError(fmt::format("the link between {} and {} has a rate of 0; allowed: at least "
                                "1 bit/s (leave out a link that is down)",
                                a, b));
  }
}

/// By vertex: whether `start` reaches it.
std::vector<bool> reached_from(const Topology& topology, VertexId start) {
  std::vector<bool> reached(topology.vertex_count());
  std::vector<VertexId> open{start};
  reached[start] = true;
  while (!open.empty()) {
    const VertexId vertex = open.back();
    open.pop_back();
    for (const LinkId id : topology.outgoing(vertex)) {
      const VertexId next = topology.link(id).to;
      if (!reached[next]) {
        reached[next] = true;
        open.push_back(next);
      }
    }
  }
  return reached;
}

} // namespace

Topology::Topology(std::vector<std::string> nodes, std::vector<std::string> switches)
    : node_count_(static_cast<std::uint32_t>(nodes.size())), names_(std::move(nodes)) {
  if (node_count_ == 0) {
    throw PlanError("the topology has no node; allowed: one at least");
  }
  names_.insert(names_.end(), std::make_move_iterator(switches.begin()),
                std::make_move_iterator(switches.end()));
  for (VertexId vertex = 0; vertex < names_.size(); ++vertex) {
    if (!by_name_.emplace(names_[vertex], vertex).second) {
      throw PlanError(fmt::format("the name {} stands for two nodes or switches; allowed: names "
                                  "that differ",
                                  names_[vertex]));
    }
  }
  outgoing_.resize(names_.size());
}

LinkId Topology::connect(VertexId a, VertexId b, LinkTraits traits) {
  if (a >= vertex_count() || b >= vertex_count()) {
    throw PlanError(fmt::format("a link ends at vertex {}; allowed: 0 to {}", std::max(a, b),
                                vertex_count() - 1));
  }
  if (a == b) {
    throw PlanError(fmt::format("a link joins {} to itself; allowed: two different ends", name(a)));
  }
  require_rate(traits, name(a), name(b));
  const auto id = static_cast<LinkId>(links_.size());
  links_.push_back({a, b, traits});
  links_.push_back({b, a, traits});
  outgoing_[a].push_back(id);
  outgoing_[b].push_back(reverse_of(id));
  return id;
}

void Topology::set_traits(LinkId id, LinkTraits traits) {
  require_rate(traits, name(links_[id].from), name(links_[id].to));
  links_[id].traits = traits;
  links_[reverse_of(id)].traits = traits;
}

void Topology::prefer(VertexId vertex, std::vector<LinkId> order) {
  if (!std::ranges::is_permutation(order, outgoing_[vertex])) {
    throw PlanError(fmt::format("{} links are put in order for {}; allowed: those {} that leave it",
                                order.size(), name(vertex), outgoing_[vertex].size()));
  }
  outgoing_[vertex] = std::move(order);
}

std::string Topology::port(LinkId id) const {
  const auto entry = ports_.find(id);
  return entry == ports_.end() ? std::string() : entry->second;
}

VertexId Topology::find(std::string_view name) const {
  const auto entry = by_name_.find(name);
  return entry == by_name_.end() ? kNone : entry->second;
}

VertexId Topology::find_cut_off() const {
  const std::vector<bool> reached = reached_from(*this, 0);
  const auto cut_off = std::ranges::find(reached, false);
  return cut_off == reached.end() ? kNone : static_cast<VertexId>(cut_off - reached.begin());
}

} // namespace weir::plan
