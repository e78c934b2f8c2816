// SPDX-License-Identifier: BSD-3-Clause
#include "server/readers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace weir::server {
namespace {

constexpr std::string_view kCpus = "/sys/devices/system/cpu";

/// Empty for what is no list.
std::vector<unsigned> list_in(const Tree& tree, const std::string& file) {
  try {
    return control::cpus_in_list(tree.line(file));
  } catch (const std::invalid_argument&) {
    return {};
  }
}

bool contains(const std::vector<unsigned>& list, unsigned number) {
  return std::ranges::find(list, number) != list.end();
}

/// Documentation/admin-guide/pm/cpuidle.rst.
std::vector<IdleState> read_idle_states(const Tree& tree, const std::string& folder) {
  std::vector<IdleState> states;
  for (const std::string& name : tree.names(folder + "/cpuidle")) {
    const std::string state = fmt::format("{}/cpuidle/{}", folder, name);
    states.push_back({.name = tree.line(state + "/name"),
                      .exit_us = tree.number<unsigned>(state + "/latency").value_or(0),
                      .is_allowed = tree.line(state + "/disable") == "0"});
  }
  return states;
}

} // namespace

std::vector<CpuFacts> read_cpus(const Tree& tree) {
  const auto online = list_in(tree, fmt::format("{}/online", kCpus));
  const auto isolated = list_in(tree, fmt::format("{}/isolated", kCpus));
  std::vector<CpuFacts> cpus;
  for (unsigned id : list_in(tree, fmt::format("{}/present", kCpus))) {
    const auto cpu = control::cpu_of(id, tree.at("/sys/devices/system"));
    const std::string folder = fmt::format("{}/cpu{}", kCpus, id);
    if (cpu) {
      cpus.push_back({.cpu = *cpu,
                      .is_online = contains(online, id),
                      .is_isolated = contains(isolated, id),
                      .governor = tree.line(folder + "/cpufreq/scaling_governor"),
                      .idle_states = read_idle_states(tree, folder)});
    }
  }
  return cpus;
}

} // namespace weir::server
