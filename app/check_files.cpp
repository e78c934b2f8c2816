// SPDX-License-Identifier: BSD-3-Clause
#include "check_files.hpp"

#include "build_parts.hpp"
#include "complaint.hpp"
#include "config/agreement.hpp"
#include "config/key_lines.hpp"
#include "config/operators.hpp"
#include "control/memory.hpp"
#include "control/own_lcores.hpp"
#include "control/placement.hpp"
#include "control/region_admission.hpp"
#include "control/work_division.hpp"
#include "output.hpp"
#include "ring/ring_set.hpp"
#include "text/number.hpp"
#include "text/printable.hpp"
#include "usage_error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace weir::app {
namespace {

using config::SwitchConfig;

constexpr const char* kProgram = "weir";

/// A file whose own keys are right.
struct FileRead {
  SwitchConfig config;
  std::uint64_t needed_mib = 0;
  std::vector<std::string> about_lcores; // what the switch would say of its CPUs on this machine
};

/// Who works for whom, as the switch would log it.
void tell_division(const FileRead& read) {
  for (const std::string& line : read.about_lcores) {
    print(line + "\n");
  }
  const config::Config& config = read.config.config;
  const ring::RingSet rings(config.rings);
  for (const std::string& line : control::division_of(control::place(config, rings), rings)) {
    print(line + "\n");
  }
}

/// With hugepages EAL takes more than -m says when it needs more.
void check_memory(const FileRead& file) {
  const std::vector<std::string>& options = file.config.config.eal_options;
  const std::vector<config::MemoryOption> memory = config::memory_options(options);
  if (memory.empty() || std::ranges::find(options, "--no-huge") == options.end()) {
    return;
  }
  const std::string key = fmt::format("eal.options[{}]", memory.back().place);
  if (text::parsed<std::uint64_t>(memory.back().number).value_or(0) < file.needed_mib) {
    const config::KeyLines lines(file.config.text, file.config.file);
    throw config::ConfigError(fmt::format(
        "{}:{}: {}: found {} MiB of memory, by -m with --no-huge; allowed: at least "
        "{}, which ports and rings need",
        file.config.file, lines.line_of(key), key, memory.back().number, file.needed_mib));
  }
}

/// nullopt after an error, which it prints. `about_lcores` gives the configuration its lcores where
/// it has none, and says so.
template <typename AboutLcores>
std::optional<FileRead> loaded(const std::string& file, AboutLcores&& about_lcores) {
  try {
    std::string text = config::read_file(file);
    config::Config config = config::parse_config(text, file);
    check_build(config, file);
    std::vector<std::string> told = about_lcores(config);
    const std::uint64_t mib = control::needed_mib(config);
    FileRead read{
        {std::filesystem::path(file).stem().string(), file, std::move(config), std::move(text)},
        mib,
        std::move(told)};
    check_memory(read);
    return read;
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

/// Whether the file has been compared with those of the other switches of its rings' trees.
enum class Compared { yes, no };

void tell_in_order(const FileRead& read, Compared compared) {
  const config::Config& config = read.config.config;
  const bool has_trees = std::ranges::any_of(config.rings, [](const ring::RingSpec& ring) {
    return !config::switches_around(ring).empty();
  });
  print(fmt::format("{}: in order{}: ports {}, rings {}; EAL needs at least {} MiB\n",
                    text::printable(read.config.file),
                    has_trees && compared == Compared::no ? " by itself" : "", config.ports.size(),
                    config.rings.size(), read.needed_mib));
  tell_division(read);
  for (const std::string& line : control::small_region_shares(config)) {
    print(line + "\n");
  }
}

/// Of one file's rings.
void tell_unchecked_trees(const config::Config& config) {
  for (const ring::RingSpec& ring : config.rings) {
    if (const auto around = config::switches_around(ring); !around.empty()) {
      print(fmt::format("ring {}: its tree is not checked: no file of {}\n", ring.id,
                        fmt::join(around, ", ")));
    }
  }
}

/// Those that contradict one another are not in order.
void tell_files(std::span<const FileRead> files, Compared compared,
                const std::set<std::string>& contradicting) {
  for (const FileRead& file : files) {
    if (!contradicting.contains(file.config.file)) {
      tell_in_order(file, compared);
    }
  }
}

/// All files have been read.
Verdict compare(std::span<const FileRead> files) {
  std::vector<SwitchConfig> switches;
  std::ranges::transform(files, std::back_inserter(switches), &FileRead::config);
  refuse_names_twice(switches);
  std::set<std::string> contradicting;
  const std::vector<config::Disagreement> said = config::disagreements(switches);
  for (const config::Disagreement& one : said) {
    complain(kProgram, one.text);
    contradicting.insert(one.files.begin(), one.files.end());
  }
  tell_files(files, Compared::yes, contradicting);
  if (!said.empty()) {
    return Verdict::mistakes;
  }
  for (const config::AgreedRing& ring : config::agreed_rings(switches)) {
    print(fmt::format("ring {}: {} ranks, root {}, the same on all its switches ({})\n", ring.id,
                      ring.world, ring.root, ring.switches));
  }
  return Verdict::in_order;
}

} // namespace

Verdict check_files(std::span<char* const> files) {
  if (files.empty()) {
    throw UsageError("--check wants files; see weir --help");
  }
  std::vector<FileRead> read;
  for (const char* const file : files) {
    if (std::optional<FileRead> one = loaded(file, control::losing_roles); one) {
      read.push_back(std::move(*one));
    }
  }
  if (read.size() == files.size() && files.size() > 1) {
    return compare(read);
  }
  tell_files(read, Compared::no, {});
  if (files.size() == 1 && !read.empty()) {
    tell_unchecked_trees(read.front().config.config);
  }
  return read.size() == files.size() ? Verdict::in_order : Verdict::mistakes;
}

Verdict try_out(const std::string& file) {
  const std::optional<FileRead> read = loaded(file, [](config::Config& config) {
    config::operators_of(config); // throws for a text that a start would refuse
    return control::take_lcores(config);
  });
  if (!read) {
    return Verdict::mistakes;
  }
  tell_in_order(*read, Compared::no);
  tell_unchecked_trees(read->config.config);
  return Verdict::in_order;
}

} // namespace weir::app
