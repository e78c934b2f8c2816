// SPDX-License-Identifier: BSD-3-Clause
#include "server/asks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

namespace weir::server {
namespace {

using config::LcoreConfig;

/// nullptr: there is no such CPU.
const CpuFacts* cpu_of(const Case& given, unsigned id) {
  const auto found =
      std::ranges::find(given.facts.cpus, id, [](const CpuFacts& facts) { return facts.cpu.id; });
  return found == given.facts.cpus.end() ? nullptr : &*found;
}

/// "2,3", as commands take them.
std::string listed(const std::vector<unsigned>& cpus) {
  return fmt::format("{}", fmt::join(cpus, ","));
}

} // namespace

std::vector<Finding> ask_cpus(const Case& given) {
  std::vector<Finding> findings;
  std::vector<unsigned> there;
  for (const LcoreConfig& lcore : given.config.lcores) {
    const CpuFacts* const cpu = cpu_of(given, lcore.id);
    if (cpu == nullptr) {
      findings.push_back({Rank::wrong,
                          fmt::format("lcore {}: this machine has no such CPU", lcore.id),
                          "lscpu -e # the CPUs that there are, for lcores[].id"});
    } else if (!cpu->is_online) {
      findings.push_back({Rank::wrong, fmt::format("lcore {}: the CPU is offline", lcore.id),
                          fmt::format("echo 1 > /sys/devices/system/cpu/cpu{}/online", lcore.id)});
    } else {
      there.push_back(lcore.id);
    }
  }
  if (findings.empty()) {
    findings.push_back({Rank::fine, fmt::format("{} are there", listed(there))});
  }
  return findings;
}

} // namespace weir::server
