// SPDX-License-Identifier: BSD-3-Clause
#include "control/numa.hpp"
#include "ring/ring_set.hpp"
#include "server/asks.hpp"
#include "server/eal_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace weir::server {
namespace {

std::vector<control::PortNode> ports_of(const Case& given) {
  std::vector<control::PortNode> ports;
  for (const config::PortConfig& port : given.config.ports) {
    const auto device = std::ranges::find(given.facts.devices, port.name, &Device::port);
    ports.push_back(
        {port.name, device == given.facts.devices.end() ? control::kNoNode : device->node});
  }
  return ports;
}

int node_of_cpu(const Case& given, unsigned id) {
  const CpuFacts* const cpu = given.facts.find_cpu(id);
  return cpu == nullptr ? control::kNoNode : cpu->cpu.node;
}

/// As the switch will have it.
control::Placement placement_of(const Case& given, const std::vector<control::PortNode>& ports) {
  const ring::RingSet rings(given.config.rings);
  control::NumaNodes nodes;
  for (const auto& lcore : control::place(given.config, rings).lcores) {
    nodes.lcores.push_back(node_of_cpu(given, lcore.id));
  }
  for (const control::PortNode& port : ports) {
    nodes.ports.push_back(port.node);
  }
  return control::place(given.config, rings, nodes);
}

/// Frames are on the node of most ports, if there is room.
std::vector<Finding> ask_frames(const Case& given, int node) {
  const std::uint64_t free_mib = given.facts.hugepages.free_mib(node);
  if (free_mib >= given.needed_mib) {
    return {};
  }
  return {{Rank::warning,
           fmt::format("node {}, that of the ports, has {} MiB of free hugepages; frames and slots "
                       "need {}, and will be on another",
                       node, free_mib, given.needed_mib),
           fmt::format("echo {} > /sys/devices/system/node/node{}/hugepages/hugepages-2048kB/"
                       "nr_hugepages",
                       (given.needed_mib + 1) / 2, node)}};
}

} // namespace

std::vector<Finding> ask_numa(const Case& given) {
  const auto ports = ports_of(given);
  const int node = control::node_of_frames(ports);
  if (node == control::kNoNode || !eal_memory(given.config.eal_options).has_hugepages) {
    return {};
  }
  std::vector<Finding> findings = ask_frames(given, node);
  for (const std::string& line : control::crossings(ports, placement_of(given, ports), node)) {
    findings.push_back({Rank::warning, line, ""});
  }
  if (findings.empty()) {
    findings.push_back({Rank::fine, fmt::format("ports, lcores and memory are on node {}", node)});
  }
  return findings;
}

} // namespace weir::server
