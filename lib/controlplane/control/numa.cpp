// SPDX-License-Identifier: BSD-3-Clause
#include "control/numa.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace weir::control {
namespace {

bool is_far(int node, int other) {
  return node != kNoNode && other != kNoNode && node != other;
}

bool receives_from(const Placement::DataLcore& lcore, std::uint16_t port) {
  return std::ranges::any_of(lcore.receives,
                             [port](const auto& queue) { return queue.port == port; });
}

bool transmits_to(const Placement::DataLcore& lcore, std::uint16_t port) {
  return std::ranges::find(lcore.transmits, port) != lcore.transmits.end();
}

/// "rx and tx"; empty if the lcore does not poll the port.
std::string polling_roles(const Placement::DataLcore& lcore, std::uint16_t port) {
  std::vector<std::string_view> roles;
  if (receives_from(lcore, port)) {
    roles.emplace_back("rx");
  }
  if (transmits_to(lcore, port)) {
    roles.emplace_back("tx");
  }
  return fmt::format("{}", fmt::join(roles, " and "));
}

void tell_of_frames(const PortNode& port, int frames, std::vector<std::string>& lines) {
  if (is_far(port.node, frames)) {
    lines.push_back(fmt::format(
        "port {} is on NUMA node {}, the memory of all frames on node {}, like most ports: the "
        "device reads and writes across the interconnect; put all ports on one node",
        port.name, port.node, frames));
  }
}

void tell_of_poller(const PortNode& port, std::uint16_t place, const Placement::DataLcore& lcore,
                    std::vector<std::string>& lines) {
  const std::string roles = polling_roles(lcore, place);
  if (!roles.empty() && is_far(port.node, lcore.node)) {
    lines.push_back(fmt::format(
        "port {} is on NUMA node {}, lcore {}, which polls it, on node {}: each frame crosses "
        "the interconnect; give the role {} only to lcores of node {}",
        port.name, port.node, lcore.id, lcore.node, roles, port.node));
  }
}

void tell_of_worker(const Placement::DataLcore& lcore, int frames,
                    std::vector<std::string>& lines) {
  if (lcore.works && is_far(lcore.node, frames)) {
    lines.push_back(fmt::format(
        "lcore {}, a worker, is on NUMA node {}, the memory of all frames on node {}: each "
        "contribution crosses the interconnect; give the role worker only to lcores of node {}",
        lcore.id, lcore.node, frames, frames));
  }
}

} // namespace

int node_of_frames(const std::vector<PortNode>& ports) {
  std::map<int, std::size_t> on_node;
  for (const PortNode& port : ports) {
    if (port.node != kNoNode) {
      ++on_node[port.node];
    }
  }
  const auto most =
      std::ranges::max_element(on_node, {}, [](const auto& entry) { return entry.second; });
  return most == on_node.end() ? kNoNode : most->first;
}

std::vector<std::string> crossings(const std::vector<PortNode>& ports, const Placement& placement,
                                   int frames) {
  std::vector<std::string> lines;
  for (std::uint16_t place = 0; place < ports.size(); ++place) {
    tell_of_frames(ports[place], frames, lines);
    for (const Placement::DataLcore& lcore : placement.lcores) {
      tell_of_poller(ports[place], place, lcore, lines);
    }
  }
  for (const Placement::DataLcore& lcore : placement.lcores) {
    tell_of_worker(lcore, frames, lines);
  }
  return lines;
}

std::string misplaced(std::string_view what, int node) {
  return fmt::format(
      "{} belong on NUMA node {}, where EAL has no memory left: they are on another node, and each "
      "access crosses the interconnect; give EAL more there (--socket-mem under eal.options, MiB "
      "by "
      "node, or hugepages of that node)",
      what, node);
}

} // namespace weir::control
