// SPDX-License-Identifier: BSD-3-Clause

/// weir-plan: plans for a topology.

#include "complaint.hpp"
#include "config/config.hpp"
#include "config/config_error.hpp"
#include "exit_status.hpp"
#include "graphviz.hpp"
#include "option_table.hpp"
#include "output.hpp"
#include "plan/algorithms.hpp"
#include "plan/drawing.hpp"
#include "plan/fabric.hpp"
#include "plan/plan_file.hpp"
#include "plan/switch_files.hpp"
#include "plan/topology_file.hpp"
#include "plan_compare.hpp"
#include "plan_options.hpp"
#include "progress_bar.hpp"
#include "wire/address.hpp"
#include "yaml/error.hpp"
#include "yaml/reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace {

using namespace weir;
using app::kExitFailure;
using app::kExitUsage;

constexpr std::uint32_t kMtu = 4096; // path MTU of a comparison

plan::VertexId node_named(const plan::Topology& topology, const std::string& option,
                          const std::string& name) {
  const plan::VertexId node = topology.find(name);
  if (node == plan::kNone || !topology.is_node(node)) {
    std::vector<std::string_view> names;
    for (plan::VertexId known = 0; known < topology.node_count(); ++known) {
      names.push_back(topology.name(known));
    }
    throw app::UsageError(fmt::format("--{}: found '{}'; allowed: a node of the topology{}", option,
                                      name, yaml::did_you_mean(name, names)));
  }
  return node;
}

std::vector<plan::VertexId> participants_of(const plan::Topology& topology,
                                            const app::PlanOptions& options) {
  if (options.nodes.empty()) {
    return plan::every_node(topology);
  }
  std::vector<plan::VertexId> nodes;
  std::set<std::string_view> names;
  for (const std::string& name : options.nodes) {
    nodes.push_back(node_named(topology, "nodes", name));
    if (!names.insert(name).second) {
      throw app::UsageError(
          fmt::format("--nodes: found '{}' twice; allowed: each node once", name));
    }
  }
  if (nodes.size() < 2) {
    app::refuse("nodes", options.nodes.front(), "two nodes at least");
  }
  return nodes;
}

/// What `write` writes. To standard output when no file is named.
void write_to(const std::string& file, const std::function<void(std::ostream&)>& write) {
  std::ostringstream text;
  write(text);
  app::write_file(file.empty() ? "-" : file, text.view());
}

void make(const plan::Topology& topology, const app::PlanOptions& options) {
  const plan::Plan made =
      plan::make_plan(topology, options.algorithm, participants_of(topology, options));
  write_to(options.out, [&](std::ostream& out) { plan::write_plan(out, topology, made); });
}

/// The next address, of the same kind. The one after the highest is the lowest.
wire::IpAddress address_after(wire::IpAddress address) {
  for (std::size_t byte = address.bytes.size(); byte-- > (address.is_v4() ? 12 : 0);) {
    if (++address.bytes[byte] != 0) {
      break;
    }
  }
  return address;
}

/// Whether a host may have it: not 0.0.0.0/8, ::, multicast, or what is reserved above it.
bool is_hosts(const wire::IpAddress& address) {
  if (address.is_v4()) {
    return address.bytes[12] != 0 && address.bytes[12] < 224;
  }
  return address != wire::IpAddress{} && address.bytes[0] != 0xff;
}

/// Whether it surely is that of a network or of all its hosts, as long as an IPv4 network has 256
/// addresses at most and an IPv6 network 2^64.
bool is_networks(const wire::IpAddress& address) {
  if (address.is_v4()) {
    return address.bytes.back() == 0 || address.bytes.back() == 255;
  }
  return std::all_of(address.bytes.begin() + 8, address.bytes.end(),
                     [](std::uint8_t byte) { return byte == 0; });
}

/// Each node's.
std::vector<std::string> addresses_from(const wire::IpAddress& first, std::uint32_t count) {
  std::vector<std::string> addresses;
  wire::IpAddress address = first;
  for (std::uint32_t node = 0; node < count; ++node, address = address_after(address)) {
    if (!is_hosts(address)) {
      app::refuse("first-address", wire::to_string(first),
                  fmt::format("the first of {} in a row that hosts may have; node {} would have {}",
                              count, node, wire::to_string(address)));
    }
    addresses.push_back(wire::to_string(address));
  }
  if (is_networks(first)) {
    app::refuse("first-address", wire::to_string(first),
                first.is_v4() ? "a host's; one that ends in .0 or .255 is a network's or for all "
                                "its hosts"
                              : "a host's; one that ends in 64 zero bits is a network's");
  }
  return addresses;
}

void make_folder(const std::string& name) {
  std::error_code error;
  std::filesystem::create_directories(name, error);
  if (!std::filesystem::is_directory(name)) {
    app::refuse("configs", name,
                fmt::format("a folder, or a place for one; it cannot be made: {}",
                            error ? error.message() : "a file is there"));
  }
}

plan::SwitchFileSettings file_settings(const plan::Topology& topology,
                                       const app::PlanOptions& options) {
  plan::SwitchFileSettings settings = options.switches;
  settings.addresses = addresses_from(options.first_address, topology.node_count());
  settings.mtu = options.ring_numbers.mtu != 0 ? options.ring_numbers.mtu : settings.mtu;
  settings.window = options.ring_numbers.window;
  settings.max_message_bytes = options.ring_numbers.message_bytes;
  return settings;
}

std::filesystem::path path_of(const plan::SwitchFile& file, const app::PlanOptions& options) {
  return std::filesystem::path(options.configs) / (file.name + ".yaml");
}

/// A mistake in the topology, or an option that does not suit it.
std::vector<plan::SwitchFile> planned_files(const plan::Topology& topology,
                                            const plan::FabricPlan& made,
                                            const app::PlanOptions& options) {
  try {
    return plan::switch_files(topology, made, file_settings(topology, options));
  } catch (const plan::PlanError& error) {
    throw app::UsageError(fmt::format("{}: {}", options.topology, error.what()));
  }
}

/// As the switch itself reads it.
void check_as_weir(const plan::SwitchFile& file, const app::PlanOptions& options) {
  try {
    config::parse_config(file.text, path_of(file, options).string());
  } catch (const config::ConfigError& error) {
    throw app::UsageError(fmt::format("weir would refuse what is to be written: {}", error.what()));
  }
}

/// Whether something else is there than this file.
bool is_other(const std::filesystem::path& path, const std::string& text) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    return false;
  }
  if (!std::filesystem::is_regular_file(status)) {
    return true;
  }
  std::ifstream stream(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {}) != text;
}

/// Somebody may have written into them.
void refuse_differing_files(std::span<const plan::SwitchFile> files,
                            const app::PlanOptions& options) {
  std::vector<std::string> differing;
  for (const plan::SwitchFile& file : files) {
    if (const std::filesystem::path path = path_of(file, options); is_other(path, file.text)) {
      differing.push_back(path.string());
    }
  }
  if (!differing.empty()) {
    throw app::UsageError(fmt::format(
        "--configs: found {} with other text than would be written, so nothing is; allowed: "
        "another folder, or --force, which writes over {}",
        fmt::join(differing, ", "), differing.size() == 1 ? "it" : "them"));
  }
}

void write_configs(const plan::Topology& topology, const plan::FabricPlan& made,
                   const app::PlanOptions& options) {
  const auto files = planned_files(topology, made, options);
  std::ranges::for_each(files, [&](const auto& file) { check_as_weir(file, options); });
  if (options.differing_files == app::DifferingFiles::kept) {
    refuse_differing_files(files, options);
  }
  make_folder(options.configs);
  for (const plan::SwitchFile& file : files) {
    app::write_file(path_of(file, options), file.text);
    if (!file.has_rings) {
      app::complain("weir-plan",
                    fmt::format("{} has no part of any ring: it only forwards", file.name));
    }
  }
}

void fabric(const plan::Topology& topology, const app::PlanOptions& options) {
  const plan::FabricPlan made =
      plan::plan_fabric(topology, participants_of(topology, options), options.rings);
  if (!options.configs.empty()) {
    write_configs(topology, made, options);
  }
  write_to(options.out, [&](std::ostream& out) { plan::write_fabric(out, topology, made); });
}

plan::Drawing drawing_of(const plan::Topology& topology, const app::PlanOptions& options) {
  const std::vector<plan::VertexId> participants = participants_of(topology, options);
  if (!options.tree.empty()) {
    const plan::VertexId root = node_named(topology, "tree", options.tree);
    const plan::Forest forest = plan::grow_forest(topology, participants);
    for (const plan::Tree& tree : forest.trees) {
      if (tree.root == root) {
        return plan::draw_tree(topology, forest, tree);
      }
    }
    throw app::UsageError(fmt::format("--tree: {} takes no part (--nodes)", options.tree));
  }
  if (options.ring == 0) {
    return plan::draw_topology(topology);
  }
  const plan::FabricPlan made = plan::plan_fabric(topology, participants, options.rings);
  if (options.ring > made.rings.size()) {
    throw app::UsageError(
        fmt::format("--ring: found {}; allowed: 1 .. {}, the rings of this fabric", options.ring,
                    made.rings.size()));
  }
  return plan::draw_ring(topology, made.rings[options.ring - 1]);
}

/// Writes text for Graphviz when the file's name ends in .gv.
void draw(const plan::Topology& topology, const app::PlanOptions& options) {
  const plan::Drawing drawing = drawing_of(topology, options);
  if (options.out.ends_with(".gv")) {
    write_to(options.out, [&](std::ostream& out) { out << drawing.text; });
  } else {
    app::write_svg(drawing, options.out);
  }
}

void compare(const plan::Topology& topology, const app::PlanOptions& options) {
  app::ComparisonSettings settings{options.rings, options.least_bytes, options.most_bytes,
                                   options.costs, options.ring_numbers};
  settings.ring_numbers.mtu = settings.ring_numbers.mtu != 0 ? settings.ring_numbers.mtu : kMtu;
  std::optional<app::ProgressBar> bar;
  const std::vector<app::Comparison> comparisons =
      app::compare(topology, participants_of(topology, options), settings,
                   [&](std::size_t pieces, std::string_view about) {
                     if (!bar) {
                       bar.emplace(pieces);
                     }
                     bar->next(about);
                   });
  bar.reset();
  write_to(options.out, [&](std::ostream& out) {
    out << app::comparison_table(topology, comparisons, settings.ring_numbers);
  });
  if (!options.plot.empty()) {
    write_to(options.plot, [&](std::ostream& out) { out << app::comparison_plot(comparisons); });
  }
}

void run(const app::PlanOptions& options) {
  const plan::Topology topology = plan::load_topology(options.topology);
  switch (options.command) {
  case app::PlanCommand::make:
    return make(topology, options);
  case app::PlanCommand::fabric:
    return fabric(topology, options);
  case app::PlanCommand::draw:
    return draw(topology, options);
  case app::PlanCommand::compare:
    return compare(topology, options);
  }
}

} // namespace

int main(int argc, char** argv) {
  try {
    run(app::parse_plan_options(argc, argv));
    return 0;
  } catch (const app::UsageError& error) {
    app::complain("weir-plan", error.what());
    return kExitUsage;
  } catch (const yaml::Error& error) {
    app::complain("weir-plan", error.what());
    return kExitUsage;
  } catch (const std::bad_alloc&) {
    app::complain(
        "weir-plan",
        "the memory is not enough for plans of so many nodes; --nodes takes some of them");
    return kExitFailure;
  } catch (const std::exception& error) {
    app::complain("weir-plan", error.what());
    return kExitFailure;
  }
}
