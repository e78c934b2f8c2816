// SPDX-License-Identifier: BSD-3-Clause
#include "control/own_lcores.hpp"

#include "control/cpu_quota.hpp"
#include "control/lcore_choice.hpp"
#include "control/numa.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

namespace weir::control {
namespace {

/// The node of a PCI device; of what is none, or on no node: kNoNode.
int node_of_device(const std::string& device) {
  std::ifstream file("/sys/bus/pci/devices/" + device + "/numa_node");
  int node = kNoNode;
  return file >> node ? node : kNoNode;
}

int node_of_ports(const std::vector<config::PortConfig>& ports) {
  std::vector<PortNode> nodes;
  for (const config::PortConfig& port : ports) {
    nodes.push_back({port.name, node_of_device(port.device_name())});
  }
  return node_of_frames(nodes);
}

LcoreDemand demand_of(const config::Config& config) {
  return {.rings = config.rings.size() + config.spare.rings,
          .ports = config.ports.size() + config.spare.ports,
          .node = node_of_ports(config.ports),
          .quota = cpu_quota()};
}

} // namespace

std::vector<std::string> losing_roles(const config::Config& config) {
  const bool one_has_both = std::ranges::any_of(config.lcores, [](const auto& lcore) {
    return lcore.plays(config::Role::rx) && lcore.plays(config::Role::worker);
  });
  if (one_has_both) {
    return {};
  }
  return {"warning: lcores: no lcore that receives works too, so each frame is handed over, and "
          "they move less than one lcore with all roles; allowed: roles: [rx, worker, tx] for "
          "each, or lcores: auto"};
}

std::vector<std::string> take_lcores(config::Config& config) {
  if (config.lcores_by == config::LcoresBy::file) {
    return losing_roles(config);
  }
  const std::vector<Cpu> cpus = cpus_of_this_process();
  if (cpus.empty()) {
    return {};
  }
  LcoreChoice choice = choose_lcores(cpus, demand_of(config), line_round_trip_ns);
  for (config::LcoreConfig& lcore : choice.lcores) {
    lcore.line = config.lcores.front().line;
  }
  config.lcores = std::move(choice.lcores);
  for (std::string& reason : choice.reasons) {
    reason.insert(0, "lcores: auto: ");
  }
  return std::move(choice.reasons);
}

} // namespace weir::control
