// SPDX-License-Identifier: BSD-3-Clause
#include "plan_options.hpp"

#include "option_table.hpp"
#include "plan/node_names.hpp"
#include "text/list.hpp"
#include "text/quantity.hpp"
#include "weir/ina.hpp"
#include "weir/limits.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>

namespace weir::app {
namespace {

constexpr const char* kHead =
    "usage: weir-plan COMMAND --topology FILE [options]\n"
    "\n"
    "Plans all-reduces for a network before it is bought or cabled (docs/planner.md).\n"
    "\n"
    "  make      an algorithm's trees and each node's schedule table, as YAML\n"
    "  fabric    the rings and the trees of Weir switches, as YAML, and each switch's "
    "configuration\n"
    "  draw      the topology, one tree or one ring, as SVG (by Graphviz) or .gv\n"
    "  compare   what an all-reduce costs by each algorithm, simulated: a table and a plot\n"
    "\n";

constexpr const char* kTail =
    "\n"
    "Example:\n"
    "  weir-plan compare --topology config/topologies/two-racks.yaml --sizes 32K:1M\n"
    "\n"
    "Exit: 0 done; 1 it failed; 2 wrong usage or a mistake in the topology.\n";

/// A command, and its options besides --topology and --out.
struct CommandRow {
  std::string_view word;
  PlanCommand command;
  std::span<const std::string_view> options;
};

constexpr std::array<std::string_view, 2> kOptionsOfMake{"nodes", "algorithm"};
constexpr std::array<std::string_view, 10> kOptionsOfFabric{
    "nodes",  "rings", "configs", "force",  "first-address",
    "device", "eal",   "mtu",     "window", "message-bytes"};
constexpr std::array<std::string_view, 4> kOptionsOfDraw{"nodes", "rings", "tree", "ring"};
constexpr std::array<std::string_view, 12> kOptionsOfCompare{"nodes",
                                                             "rings",
                                                             "mtu",
                                                             "window",
                                                             "message-bytes",
                                                             "sizes",
                                                             "switch-packet-time",
                                                             "switch-lcores",
                                                             "switch-latency",
                                                             "host-latency",
                                                             "host-addition",
                                                             "plot"};

constexpr std::array kCommands{
    CommandRow{"make", PlanCommand::make, kOptionsOfMake},
    CommandRow{"fabric", PlanCommand::fabric, kOptionsOfFabric},
    CommandRow{"draw", PlanCommand::draw, kOptionsOfDraw},
    CommandRow{"compare", PlanCommand::compare, kOptionsOfCompare},
};

/// What fabric takes for the files that --configs writes, and has no use for without them.
constexpr std::array<std::string_view, 7> kOptionsOfFiles{
    "force", "first-address", "device", "eal", "mtu", "window", "message-bytes"};

constexpr std::uint32_t kMostRings = 4096;
constexpr std::uint32_t kMostLcores = 1024;
constexpr std::string_view kAlgorithmNames = "multitree, ring, ring-across, dbtree, 2d-ring, hdrm";

std::vector<std::string> node_names(std::string_view text) {
  constexpr std::size_t most = 1 << 16;
  std::vector<std::string> names;
  for (const std::string_view pattern : text::words_of(text)) {
    const auto expanded = plan::expand_names(pattern, most);
    if (!expanded || expanded->front().empty()) {
      refuse("nodes", text, "names of nodes, or several as n[0-7], with commas between");
    }
    names.insert(names.end(), expanded->begin(), expanded->end());
  }
  return names;
}

void set_sizes(PlanOptions& options, std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto least = text::parse_size(text.substr(0, colon));
  const auto most =
      text::parse_size(colon == std::string_view::npos ? text : text.substr(colon + 1));
  if (!least || !most || *least == 0 || *least > *most) {
    refuse("sizes", text, "bytes as 1M, or a range as 32K:1G (K, M, G are powers of 1024)");
  }
  options.least_bytes = *least;
  options.most_bytes = *most;
}

/// The quantity that `parse` finds in `text`. `form` is the allowed form, for errors.
template <class Parse>
std::uint64_t quantity(std::string_view option, std::string_view text, const Parse& parse,
                       std::string_view form) {
  const std::optional<std::uint64_t> value = parse(text);
  if (!value) {
    refuse(option, text, form);
  }
  return *value;
}

std::uint64_t nanoseconds(std::string_view option, std::string_view text) {
  return quantity(option, text, text::parse_latency, text::kLatencyForm);
}

std::uint32_t path_mtu(std::string_view text) {
  const auto mtu = text::parsed<std::uint32_t>(text);
  if (!mtu || std::ranges::find(kPathMtus, *mtu) == kPathMtus.end()) {
    refuse("mtu", text, fmt::format("{}", fmt::join(kPathMtus, ", ")));
  }
  return *mtu;
}

void refuse_unknown_words(std::string_view option, std::string_view text,
                          std::span<const std::string_view> words) {
  if (const std::string_view unknown = plan::unknown_word(text, words); !unknown.empty()) {
    refuse(option, unknown, fmt::format("{{{}}}", fmt::join(words, "}, {")));
  }
}

/// Each port is another device. EAL knows a device by what stands before the first comma.
void check_device(std::string_view text) {
  constexpr std::array<std::string_view, 3> own_of_port{"{port}", "{number}", "{cable}"};
  refuse_unknown_words("device", text, plan::kDeviceWords);
  const std::string_view name = text.substr(0, text.find(','));
  if (std::ranges::none_of(own_of_port, [&](std::string_view word) {
        return name.find(word) != std::string_view::npos;
      })) {
    refuse("device", text,
           fmt::format("a device of its own for each port: {} before the first comma",
                       fmt::join(own_of_port, " or ")));
  }
}

std::vector<Option> options_of_all(PlanOptions& o) {
  return {
      {"topology", "FILE", "nodes, switches and links, or a generator; YAML",
       [&](auto v) { o.topology = v; }},
      {"nodes", "LIST", "those that take part, as a,b or n[0-7] (default: all)",
       [&](auto v) { o.nodes = node_names(v); }},
      {"algorithm", "NAME", "make: multitree (default), ring, ring-across, dbtree, 2d-ring, hdrm",
       [&](auto v) {
         const auto algorithm = plan::algorithm_named(v);
         if (!algorithm) {
           refuse("algorithm", v, kAlgorithmNames);
         }
         o.algorithm = *algorithm;
       }},
      {"rings", "N", "fabric, draw, compare: rings at most (default: as links allow)",
       [&](auto v) { o.rings = number<std::uint32_t>("rings", v, 1, kMostRings); }},
      {"tree", "NODE", "draw: MultiTree's tree with this root", [&](auto v) { o.tree = v; }},
      {"ring", "N", "draw: ring N of the fabric and its tree of switches",
       [&](auto v) { o.ring = number<std::uint32_t>("ring", v, 1, kMostRings); }},
  };
}

std::vector<Option> options_of_fabric(PlanOptions& o) {
  return {
      {"configs", "DIR", "fabric: write each switch's configuration there, as SWITCH.yaml",
       [&](auto v) { o.configs = v; }},
      {"force", nullptr, "fabric: write over files in DIR that differ from what is written",
       [&](auto) { o.differing_files = DifferingFiles::replaced; }},
      {"first-address", "IP",
       "fabric: of the first node; each next node has the next one (10.0.0.1)",
       [&](auto v) {
         const auto address = wire::parse_ip(v);
         if (!address) {
           refuse("first-address", v, "an address such as 10.0.0.1 or 2001:db8::1");
         }
         o.first_address = *address;
       }},
      {"device", "TEXT",
       "fabric: of each port; {port}, {number}, {switch}, {cable}, {role} and {server} are filled "
       "in",
       [&](auto v) {
         check_device(v);
         o.switches.device = v;
       }},
      {"eal", "LIST",
       "fabric: EAL's options of each switch, with commas between; {switch} likewise",
       [&](auto v) {
         refuse_unknown_words("eal", v, plan::kEalWords);
         for (const std::string_view option : text::words_of(v)) {
           o.switches.eal.emplace_back(option);
         }
       }},
      {"mtu", "N", "fabric (1024), compare (4096): path MTU: 256, 512, 1024, 2048, 4096",
       [&](auto v) { o.ring_numbers.mtu = path_mtu(v); }},
      {"window", "N", "fabric, compare: messages under way of each rank (default 8)",
       [&](auto v) { o.ring_numbers.window = number<std::uint32_t>("window", v, 1, kMaxWindow); }},
      {"message-bytes", "N",
       "fabric, compare: longest message, 40-byte header included (default 65536)",
       [&](auto v) {
         o.ring_numbers.message_bytes = static_cast<std::uint32_t>(
             byte_count("message-bytes", v, kInaHeaderBytes + 8, kMaxMessageBytes));
       }},
  };
}

std::vector<Option> options_of_compare(PlanOptions& o) {
  return {
      {"sizes", "FROM:TO", "compare: tensors of these bytes, by doubling (32K:1G)",
       [&](auto v) { set_sizes(o, v); }},
      {"switch-packet-time", "TIME", "compare: of a Weir switch's lcore for a packet (default 0ns)",
       [&](auto v) { o.costs.switch_packet_ns = nanoseconds("switch-packet-time", v); }},
      {"switch-lcores", "N", "compare: a Weir switch's lcores that take packets (default 1)",
       [&](auto v) {
         o.costs.switch_lcores = number<std::uint32_t>("switch-lcores", v, 1, kMostLcores);
       }},
      {"switch-latency", "TIME", "compare: of a Weir switch, besides (default 0ns)",
       [&](auto v) { o.costs.switch_latency_ns = nanoseconds("switch-latency", v); }},
      {"host-latency", "TIME", "compare: from a host's interface to its program (default 0ns)",
       [&](auto v) { o.costs.host_latency_ns = nanoseconds("host-latency", v); }},
      {"host-addition", "RATE", "compare: how fast a host adds, as 20GB/s (default: no time)",
       [&](auto v) {
         o.costs.host_addition = quantity("host-addition", v, text::parse_rate, text::kRateForm);
         if (o.costs.host_addition == 0) {
           refuse("host-addition", v, text::kRateForm);
         }
       }},
      {"plot", "FILE", "compare: time by size, as SVG", [&](auto v) { o.plot = v; }},
      {"out", "FILE", "where to (default: standard output); draw: FILE.svg or FILE.gv",
       [&](auto v) { o.out = v; }},
  };
}

std::vector<Option> options_of(PlanOptions& o) {
  std::vector<Option> options = options_of_all(o);
  for (const auto& more : {options_of_fabric(o), options_of_compare(o)}) {
    options.insert(options.end(), more.begin(), more.end());
  }
  return options;
}

const CommandRow& command_named(std::string_view word) {
  const auto command = std::ranges::find(kCommands, word, &CommandRow::word);
  if (command == kCommands.end()) {
    throw UsageError(fmt::format(
        "found '{}'; allowed: make, fabric, draw or compare; see weir-plan --help", word));
  }
  return *command;
}

bool has(std::span<const std::string_view> options, std::string_view option) {
  return std::ranges::find(options, option) != options.end();
}

std::vector<std::string_view> commands_with(std::string_view option) {
  std::vector<std::string_view> words;
  for (const CommandRow& row : kCommands) {
    if (has(row.options, option)) {
      words.push_back(row.word);
    }
  }
  return words;
}

/// An option that would change nothing is a mistake of who gave it.
void check_uses(const CommandLine& line, const CommandRow& command) {
  for (const std::string_view option : line.options) {
    const bool is_of_all = option == "topology" || option == "out";
    if (!is_of_all && !has(command.options, option)) {
      throw UsageError(fmt::format("--{}: found with {}; allowed: with {}", option, command.word,
                                   fmt::join(commands_with(option), ", ")));
    }
    const bool is_of_files = command.command == PlanCommand::fabric && has(kOptionsOfFiles, option);
    if (is_of_files && !line.options.contains("configs")) {
      throw UsageError(
          fmt::format("--{}: found without --configs; allowed: with --configs DIR, whose files it "
                      "is for",
                      option));
    }
  }
}

void check_files(const CommandLine& line) {
  FileUse out = file_use(line, "out", Use::write);
  if (out.file.empty()) {
    out = {"standard output", "-", Use::write};
  }
  refuse_shared_files(
      std::array{file_use(line, "topology", Use::read), out, file_use(line, "plot", Use::write)});
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
  PlanOptions options;
  options.first_address = *wire::parse_ip("10.0.0.1");
  const CommandLine line =
      read_command_line({argv, static_cast<std::size_t>(argc)}, {"weir-plan", kHead, kTail},
                        options_of(options), WordOrder::anywhere);
  if (line.words.empty()) {
    throw UsageError("missing: make, fabric, draw or compare; see weir-plan --help");
  }
  const CommandRow& command = command_named(line.words.front());
  options.command = command.command;
  if (line.words.size() > 1) {
    throw UsageError(fmt::format("found '{}'; see weir-plan --help", line.words[1]));
  }
  check(options);
  check_uses(line, command);
  check_files(line);
  return options;
}

} // namespace weir::app
