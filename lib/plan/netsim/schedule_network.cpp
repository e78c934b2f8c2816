// SPDX-License-Identifier: BSD-3-Clause
#include "netsim/schedule_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

namespace weir::netsim {
namespace {

std::uint64_t fastest_link_of(const plan::Topology& topology, plan::VertexId node) {
  std::uint64_t rate = 0;
  for (const plan::LinkId link : topology.outgoing(node)) {
    rate = std::max(rate, topology.link(link).traits.bits_per_second);
  }
  return rate;
}

void require_route(const plan::Topology& topology, const plan::Message& message,
                   std::span<const plan::LinkId> route) {
  plan::VertexId at = message.from;
  for (const plan::LinkId link : route) {
    if (link >= topology.links().size() || topology.link(link).from != at) {
      throw SimulationError(fmt::format(
          "a message from {} to {} has link {} on its way, which does "
          "not begin at {}",
          topology.name(message.from), topology.name(message.to), link, topology.name(at)));
    }
    at = topology.link(link).to;
  }
  if (at != message.to || route.empty()) {
    throw SimulationError(fmt::format("the way of a message from {} to {} ends at {}",
                                      topology.name(message.from), topology.name(message.to),
                                      topology.name(at)));
  }
}

bool is_along_row(const plan::Grid& grid, const plan::Link& link) {
  return link.from / grid.columns == link.to / grid.columns;
}

/// Whether the link is a wrapped one: neither node is the other's next.
bool is_wrapped(const plan::Grid& grid, const plan::Link& link) {
  const std::uint32_t low = std::min(link.from, link.to);
  const std::uint32_t high = std::max(link.from, link.to);
  return high - low > (is_along_row(grid, link) ? 1 : grid.columns);
}

/// Marks the hops of a way in a torus. Along one dimension a way makes no turn, so it either
/// crosses its dateline or does not.
void mark_datelines(const plan::Topology& topology, std::span<Hop> way) {
  const auto link_of = [&](const Hop& hop) { return topology.link(hop.link); };
  for (std::size_t begin = 0, end = 0; begin < way.size(); begin = end) {
    const bool is_row = is_along_row(*topology.grid, link_of(way[begin]));
    bool crosses = false;
    while (end < way.size() && is_along_row(*topology.grid, link_of(way[end])) == is_row) {
      crosses = crosses || is_wrapped(*topology.grid, link_of(way[end]));
      ++end;
    }
    for (Hop& hop : way.subspan(begin, end - begin)) {
      hop.dateline = crosses ? Hop::Dateline::crossed : Hop::Dateline::not_crossed;
    }
  }
}

} // namespace

ScheduleNetwork::ScheduleNetwork(const plan::Topology& topology, const plan::Schedule& schedule,
                                 const NodeTraits& nodes)
    : has_channels_(topology.is_direct()), channels_(schedule.channels),
      received_(topology.node_count()), receiving_step_(topology.node_count()) {
  for (const plan::Link& link : topology.links()) {
    const bool is_routed_on = has_channels_ || !topology.is_node(link.to);
    network_.add({link.traits.bits_per_second, link.traits.latency_ns * kNanosecond +
                                                   (is_routed_on ? nodes.routing_latency : 0)});
  }
  if (has_channels_) {
    add_channels(topology, schedule, nodes);
  }
  add_routes(topology, schedule);
}

void ScheduleNetwork::add_channels(const plan::Topology& topology, const plan::Schedule& schedule,
                                   const NodeTraits& nodes) {
  const auto add_for_all = [&](Time latency) {
    const auto first = static_cast<LinkIndex>(network_.links().size());
    for (plan::VertexId node = 0; node < topology.node_count(); ++node) {
      for (std::uint32_t channel = 0; channel < schedule.channels; ++channel) {
        network_.add({fastest_link_of(topology, node), latency});
      }
    }
    return first;
  };
  first_injection_ = add_for_all(nodes.channel_latency + nodes.routing_latency);
  first_ejection_ = add_for_all(nodes.channel_latency);
}

/// Adds the routes step by step, and within a step in the order of messages.
void ScheduleNetwork::add_routes(const plan::Topology& topology, const plan::Schedule& schedule) {
  const std::size_t count = schedule.messages.size();
  const std::uint32_t extra = has_channels_ ? 2 : 0;
  first_.resize(count + 1);
  injection_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    first_[i + 1] = first_[i] + schedule.messages[i].route.count + extra;
  }
  hops_.resize(first_[count]);
  std::vector<plan::MessageId> by_step(count);
  std::iota(by_step.begin(), by_step.end(), 0);
  std::sort(by_step.begin(), by_step.end(), [&](plan::MessageId a, plan::MessageId b) {
    const plan::Message& first = schedule.messages[a];
    const plan::Message& second = schedule.messages[b];
    return std::tuple(first.step, first.flow, a) < std::tuple(second.step, second.flow, b);
  });
  for (const plan::MessageId id : by_step) {
    const plan::Message& message = schedule.messages[id];
    const std::span<const plan::LinkId> route = schedule.route_of(message);
    require_route(topology, message, route);
    const std::uint32_t first = first_[id] + (has_channels_ ? 1 : 0);
    for (std::size_t i = 0; i < route.size(); ++i) {
      hops_[first + i].link = route[i];
    }
    if (topology.grid && topology.grid->edges == plan::Grid::Edges::wrapped) {
      mark_datelines(topology, std::span(hops_).subspan(first, route.size()));
    }
    if (has_channels_) {
      injection_[id] = first_injection_ + message.from * channels_;
      hops_[first_[id + 1] - 1].link = ejection_of(message);
    }
  }
}

/// Messages to a node in one step take its channels in turn, as in the public simulator of
/// MultiTree's authors.
LinkIndex ScheduleNetwork::ejection_of(const plan::Message& message) {
  if (receiving_step_[message.to] != message.step) {
    receiving_step_[message.to] = message.step;
    received_[message.to] = 0;
  }
  return first_ejection_ + message.to * channels_ + received_[message.to]++ % channels_;
}

std::span<const Hop> ScheduleNetwork::route(plan::MessageId message, std::uint32_t channel) {
  if (has_channels_) {
    hops_[first_[message]].link = injection_[message] + channel;
  }
  return std::span(hops_).subspan(first_[message], first_[message + 1] - first_[message]);
}

} // namespace weir::netsim
