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

} // namespace

std::vector<CpuFacts> read_cpus(const Tree& tree) {
  const auto online = list_in(tree, fmt::format("{}/online", kCpus));
  const auto isolated = list_in(tree, fmt::format("{}/isolated", kCpus));
  std::vector<CpuFacts> cpus;
  for (unsigned id : list_in(tree, fmt::format("{}/present", kCpus))) {
    const auto cpu = control::cpu_of(id, tree.at("/sys/devices/system"));
    if (cpu) {
      cpus.push_back(
          {.cpu = *cpu, .is_online = contains(online, id), .is_isolated = contains(isolated, id)});
    }
  }
  return cpus;
}

} // namespace weir::server
