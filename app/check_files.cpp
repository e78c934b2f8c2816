// SPDX-License-Identifier: BSD-3-Clause
#include "check_files.hpp"

#include "complaint.hpp"
#include "config/agreement.hpp"
#include "control/memory.hpp"
#include "control/placement.hpp"
#include "output.hpp"
#include "ring/ring_set.hpp"
#include "text/printable.hpp"
#include "usage_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace weir::app {
namespace {

using config::SwitchConfig;

constexpr const char* kProgram = "weir";

/// nullopt after an error, which it prints.
std::optional<SwitchConfig> loaded(const std::string& file) {
  try {
    return SwitchConfig{std::filesystem::path(file).stem().string(), file,
                        config::load_config(file)};
  } catch (const config::ConfigError& error) {
    complain(kProgram, error.what());
    return std::nullopt;
  }
}

void refuse_names_twice(std::span<const SwitchConfig> switches) {
  for (auto one = switches.begin(); one != switches.end(); ++one) {
    const auto other = std::find_if(switches.begin(), one, [&](const SwitchConfig& before) {
      return before.name == one->name;
    });
    if (other != one) {
      throw UsageError(fmt::format("--check: found {} and {}; allowed: files of different names, "
                                   "each that of its switch",
                                   other->file, one->file));
    }
  }
}

double needed_mib(const config::Config& config) {
  constexpr double mib = 1 << 20;
  const ring::RingSet rings(config.rings);
  const control::Placement placement = control::with_queues(config, control::place(config, rings));
  return static_cast<double>(control::plan_memory(config, rings, placement).total()) / mib;
}

void tell_in_order(const SwitchConfig& one) {
  print(fmt::format("{}: in order: ports {}, rings {}; EAL needs at least {:.0f} MiB\n",
                    text::printable(one.file), one.config.ports.size(), one.config.rings.size(),
                    needed_mib(one.config)));
}

/// How many disagreements there are.
std::size_t compare(std::span<const SwitchConfig> switches) {
  refuse_names_twice(switches);
  const std::vector<std::string> said = config::disagreements(switches);
  for (const std::string& one : said) {
    complain(kProgram, one);
  }
  if (said.empty()) {
    for (const config::AgreedRing& ring : config::agreed_rings(switches)) {
      print(fmt::format("ring {}: {} ranks, root {}, the same on all its switches ({})\n", ring.id,
                        ring.world, ring.root, ring.switches));
    }
  }
  return said.size();
}

} // namespace

Verdict check_files(std::span<char* const> files) {
  if (files.empty()) {
    throw UsageError("--check wants files; see weir --help");
  }
  std::vector<SwitchConfig> switches;
  for (const char* const file : files) {
    if (std::optional<SwitchConfig> one = loaded(file); one) {
      tell_in_order(*one);
      switches.push_back(std::move(*one));
    }
  }
  const bool all_are_read = switches.size() == files.size();
  const bool is_in_order = all_are_read && (files.size() == 1 || compare(switches) == 0);
  return is_in_order ? Verdict::in_order : Verdict::mistakes;
}

} // namespace weir::app
