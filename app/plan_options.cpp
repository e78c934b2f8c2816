// SPDX-License-Identifier: BSD-3-Clause
#include "plan_options.hpp"

#include "plan/quantity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <getopt.h>
#include <string_view>

namespace weir::app {
namespace {

constexpr const char* kHead =
    "usage: weir-plan COMMAND --topology FILE [options]\n"
    "\n"
    "Plans all-reduces for a network before it is bought or cabled (docs/planner.md).\n"
    "\n"
    "  make      an algorithm's trees and each node's schedule table, as YAML\n"
    "  fabric    for Weir switches: the ring and the tree that each of them holds, as YAML\n"
    "  draw      the topology, one tree or one ring, as SVG (by Graphviz) or .gv\n"
    "  compare   what an all-reduce costs by each algorithm, simulated: a table and a plot\n"
    "\n";

constexpr const char* kTail =
    "\n"
    "Example:\n"
    "  weir-plan compare --topology config/topologies/two-racks.yaml --sizes 32K:1M\n"
    "\n"
    "Exit: 0 done; 1 it failed; 2 wrong usage or a mistake in the topology.\n";

constexpr std::array<std::pair<std::string_view, PlanCommand>, 4> kCommands{{
    {"make", PlanCommand::make},
    {"fabric", PlanCommand::fabric},
    {"draw", PlanCommand::draw},
    {"compare", PlanCommand::compare},
}};

constexpr std::string_view kAlgorithms = "multitree, ring, ring-across, dbtree, 2d-ring, hdrm";

[[noreturn]] void refuse(std::string_view option, std::string_view value,
                         std::string_view allowed) {
  throw UsageError(fmt::format("--{}: found '{}'; allowed: {}", option, value, allowed));
}

std::uint32_t ring_number(std::string_view option, std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1 || value > 4096) {
    refuse(option, text, "1 .. 4096");
  }
  return value;
}

std::vector<std::string> node_names(std::string_view text) {
  constexpr std::size_t most = 1 << 16;
  std::vector<std::string> names;
  while (true) {
    const std::size_t comma = text.find(',');
    const auto expanded = plan::expand_names(text.substr(0, comma), most);
    if (!expanded || expanded->front().empty()) {
      refuse("nodes", text, "names of nodes, or several as n[0-7], with commas between");
    }
    names.insert(names.end(), expanded->begin(), expanded->end());
    if (comma == std::string_view::npos) {
      return names;
    }
    text.remove_prefix(comma + 1);
  }
}

void set_sizes(PlanOptions& options, std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto least = plan::parse_size(text.substr(0, colon));
  const auto most =
      plan::parse_size(colon == std::string_view::npos ? text : text.substr(colon + 1));
  if (!least || !most || *least == 0 || *least > *most) {
    refuse("sizes", text, "bytes as 1M, or a range as 32K:1G (K, M, G are powers of 1024)");
  }
  options.least_bytes = *least;
  options.most_bytes = *most;
}

/// One option: its name, its argument (none: a flag), what it is for, and what it does.
struct Option {
  const char* name;
  const char* argument;
  const char* meaning;
  std::function<void(PlanOptions&, std::string_view)> set;
};

void print_help();

void print_version() {
  fmt::print("weir-plan {}\n", WEIR_VERSION);
}

const std::vector<Option>& options_table() {
  static const std::vector<Option> table{
      {"topology", "FILE", "nodes, switches and links, or a generator; YAML",
       [](auto& o, auto v) { o.topology = v; }},
      {"nodes", "LIST", "those that take part, as a,b or n[0-7] (default: all)",
       [](auto& o, auto v) { o.nodes = node_names(v); }},
      {"algorithm", "NAME", "make: multitree (default), ring, ring-across, dbtree, 2d-ring, hdrm",
       [](auto& o, auto v) {
         const auto algorithm = plan::algorithm_named(v);
         if (!algorithm) {
           refuse("algorithm", v, kAlgorithms);
         }
         o.algorithm = *algorithm;
       }},
      {"rings", "N", "fabric, draw, compare: rings at most (default: as links allow)",
       [](auto& o, auto v) { o.rings = ring_number("rings", v); }},
      {"tree", "NODE", "draw: MultiTree's tree with this root",
       [](auto& o, auto v) { o.tree = v; }},
      {"ring", "N", "draw: ring N of the fabric and its tree of switches",
       [](auto& o, auto v) { o.ring = ring_number("ring", v); }},
      {"sizes", "FROM:TO", "compare: tensors of these bytes, by doubling (32K:1G)", set_sizes},
      {"plot", "FILE", "compare: time by size, as SVG", [](auto& o, auto v) { o.plot = v; }},
      {"out", "FILE", "where to (default: standard output); draw: FILE.svg or FILE.gv",
       [](auto& o, auto v) { o.out = v; }},
      {"version", nullptr, "which",
       [](auto&, auto) {
         print_version();
         std::exit(EXIT_SUCCESS);
       }},
      {"help", nullptr, "this text",
       [](auto&, auto) {
         print_help();
         std::exit(EXIT_SUCCESS);
       }},
  };
  return table;
}

void print_help() {
  fmt::print("{}", kHead);
  for (const Option& option : options_table()) {
    const std::string left =
        fmt::format("--{} {}", option.name, option.argument != nullptr ? option.argument : "");
    fmt::print("  {:18} {}\n", left, option.meaning);
  }
  fmt::print("{}", kTail);
}

std::vector<option> getopt_table() {
  std::vector<option> table;
  for (const Option& entry : options_table()) {
    table.push_back(
        {entry.name, entry.argument != nullptr ? required_argument : no_argument, nullptr, 0});
  }
  table.push_back({});
  return table;
}

PlanCommand command_named(std::string_view word) {
  const auto command =
      std::ranges::find(kCommands, word, &std::pair<std::string_view, PlanCommand>::first);
  if (command == kCommands.end()) {
    throw UsageError(fmt::format(
        "found '{}'; allowed: make, fabric, draw or compare; see weir-plan --help", word));
  }
  return command->second;
}

void check(const PlanOptions& options) {
  if (options.topology.empty()) {
    throw UsageError("missing: --topology; see weir-plan --help");
  }
  if (options.command == PlanCommand::draw && options.out.empty()) {
    throw UsageError("draw wants --out FILE.svg");
  }
  if (options.command == PlanCommand::draw && !options.tree.empty() && options.ring != 0) {
    throw UsageError("draw takes --tree or --ring, not both");
  }
  if (options.command == PlanCommand::compare && options.most_bytes == 0) {
    throw UsageError("compare wants --sizes FROM:TO, such as 32K:64M");
  }
}

} // namespace

PlanOptions parse_plan_options(int argc, char** argv) {
  const std::vector<option> long_options = getopt_table();
  PlanOptions options;
  int index = 0;
  for (int c = 0; (c = getopt_long(argc, argv, "", long_options.data(), &index)) != -1;) {
    if (c != 0) {
      throw UsageError("see weir-plan --help");
    }
    options_table()[static_cast<std::size_t>(index)].set(options, optarg != nullptr ? optarg : "");
  }
  if (optind == argc) {
    throw UsageError("missing: make, fabric, draw or compare; see weir-plan --help");
  }
  options.command = command_named(argv[optind]);
  if (optind + 1 != argc) {
    throw UsageError(fmt::format("found '{}'; see weir-plan --help", argv[optind + 1]));
  }
  check(options);
  return options;
}

} // namespace weir::app
