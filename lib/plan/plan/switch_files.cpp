// SPDX-License-Identifier: BSD-3-Clause
#include "plan/switch_files.hpp"

#include "plan/port_names.hpp"
#include "text/json.hpp"
#include "weir/ina.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <span>
#include <string_view>
#include <utility>

namespace weir::plan {
namespace {

constexpr std::size_t kMostPorts = 32;   // of a switch
constexpr std::uint32_t kPortMtu = 1500; // of a port whose file says nothing
/// Bytes of Ethernet payload beside that of a RoCEv2 packet with the longest header: IPv6 40, UDP
/// 8, BTH 12, RETH 16, immediate 4, ICRC 4.
constexpr std::uint32_t kHeaderBytes = 40 + 8 + 12 + 16 + 4 + 4;

bool is_between_switches(const Topology& topology, LinkId link) {
  return !topology.is_node(topology.link(link).from) && !topology.is_node(topology.link(link).to);
}

/// Cables between switches that form no loop.
class BridgeTree {
 public:
  BridgeTree(const Topology& topology, const FabricRing& first)
      : topology_(topology), root_(topology.vertex_count()), is_in_(topology.links().size() / 2),
        is_wanted_(topology.vertex_count()) {
    std::iota(root_.begin(), root_.end(), VertexId{0});
    for (const FabricSwitch& one : first.switches) {
      is_wanted_[one.vertex] = true;
      if (one.up != kNone) {
        add(one.up);
      }
    }
    for (LinkId link = 0; link < topology.links().size(); link += 2) {
      const Link& cable = topology.link(link);
      if (is_between_switches(topology, link)) {
        add(link);
      } else {
        is_wanted_[cable.from] = is_wanted_[cable.to] = true;
      }
    }
    while (prune()) {
    }
  }

  bool has(LinkId link) const { return is_in_[cable_of(link)]; }

 private:
  VertexId root_of(VertexId vertex) const {
    while (root_[vertex] != vertex) {
      vertex = root_[vertex];
    }
    return vertex;
  }

  void add(LinkId link) {
    const VertexId one = root_of(topology_.link(link).from);
    const VertexId other = root_of(topology_.link(link).to);
    if (one != other) {
      root_[one] = other;
      is_in_[cable_of(link)] = true;
    }
  }

  /// Takes out the cables of switches at the tree's edge that nobody needs. Returns whether there
  /// were any.
  bool prune() {
    bool has_pruned = false;
    for (VertexId at = topology_.node_count(); at < topology_.vertex_count(); ++at) {
      std::vector<LinkId> cables;
      std::ranges::copy_if(topology_.outgoing(at), std::back_inserter(cables),
                           [&](LinkId link) { return has(link); });
      if (cables.size() == 1 && !is_wanted_[at]) {
        is_in_[cable_of(cables.front())] = false;
        has_pruned = true;
      }
    }
    return has_pruned;
  }

  const Topology& topology_;
  std::vector<VertexId> root_;  // by vertex: another of its tree, or itself
  std::vector<bool> is_in_;     // by cable
  std::vector<bool> is_wanted_; // by vertex: hosts are on it, or the first ring
};

/// With `value` in place of each `{word}`.
std::string replaced(std::string text, std::string_view word, std::string_view value) {
  const std::string place = fmt::format("{{{}}}", word);
  for (std::size_t at = text.find(place); at != std::string::npos;
       at = text.find(place, at + value.size())) {
    text.replace(at, place.size(), value);
  }
  return text;
}

/// The text of one switch's file.
class FileText {
 public:
  FileText(const Topology& topology, const FabricPlan& fabric, const SwitchFileSettings& settings,
           const BridgeTree& bridge, VertexId at)
      : topology_(topology), fabric_(fabric), settings_(settings), bridge_(bridge), at_(at),
        name_(plain(topology.name(at))), ports_(topology, at) {}

  SwitchFile write() {
    add("# {}. Written by weir-plan fabric.\n", name_);
    write_eal();
    add("ports:\n");
    for (std::size_t number = 0; number < ports_.links().size(); ++number) {
      write_port(number);
    }
    bool is_first = true;
    for (std::size_t ring = 0; ring < fabric_.rings.size(); ++ring) {
      const auto& switches = fabric_.rings[ring].switches;
      const auto part = std::ranges::find(switches, at_, &FabricSwitch::vertex);
      if (part != switches.end()) {
        add("{}", std::exchange(is_first, false) ? "rings:\n" : "");
        write_ring(ring, *part);
      }
    }
    return {name_, text_, !is_first};
  }

 private:
  template <class... Values>
  void add(fmt::format_string<const Values&...> form, const Values&... values) {
    fmt::format_to(std::back_inserter(text_), form, values...);
  }

  std::string port_name(LinkId link) const { return text::json_string(ports_.name(link)); }

  void write_eal() {
    if (settings_.eal.empty()) {
      return;
    }
    add("eal:\n  options:\n");
    for (const std::string& option : settings_.eal) {
      add("    - {}\n", text::json_string(replaced(option, "switch", name_)));
    }
  }

  void write_port(std::size_t number) {
    const LinkId link = ports_.links()[number];
    const VertexId peer = topology_.link(link).to;
    const bool is_server = topology_.is_node(peer) || at_ < peer;
    std::string device = replaced(settings_.device, "switch", name_);
    device = replaced(device, "port", ports_.name(link));
    device = replaced(device, "number", fmt::format("{}", number));
    device = replaced(device, "cable", fmt::format("{}", cable_of(link)));
    device = replaced(device, "role", is_server ? "server" : "client");
    device = replaced(device, "server", is_server ? name_ : plain(topology_.name(peer)));
    const bool is_bridge = topology_.is_node(peer) || bridge_.has(link);
    const std::uint32_t mtu = settings_.mtu + kHeaderBytes;
    add("  - {{name: {}, device: {}{}{}}}\n", port_name(link), text::json_string(device),
        mtu <= kPortMtu ? "" : fmt::format(", mtu: {}", mtu), is_bridge ? "" : ", bridge: no");
  }

  void write_ring(std::size_t ring, const FabricSwitch& part) {
    const bool is_whole = part.parent == kNone && // no other switch has a part
                          std::ranges::all_of(part.children, [&](const FabricChild& child) {
                            return topology_.is_node(child.vertex);
                          });
    add("  - id: {}\n    window: {}\n    max_message_bytes: {}\n    mtu: {}\n", ring + 1,
        settings_.window, settings_.max_message_bytes, settings_.mtu);
    add("    members:\n");
    const std::vector<VertexId>& members = fabric_.rings[ring].members;
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      add("      - {{ip: {}{}}}\n", text::json_string(settings_.addresses[members[rank]]),
          is_whole ? ", port: " + port_name(part.children[rank].down) : "");
    }
    if (!is_whole) {
      write_tree(part);
    }
  }

  void write_tree(const FabricSwitch& part) {
    if (part.parent != kNone) {
      add("    parent: {{switch: {}, port: {}}}\n",
          text::json_string(plain(topology_.name(part.parent))), port_name(part.up));
    }
    add("    children:\n");
    for (const FabricChild& child : part.children) {
      if (topology_.is_node(child.vertex)) {
        add("      - {{rank: {}, port: {}}}\n", child.first_rank, port_name(child.down));
      } else {
        add("      - {{switch: {}, ranks: [{}, {}], port: {}}}\n",
            text::json_string(plain(topology_.name(child.vertex))), child.first_rank,
            child.first_rank + child.rank_count - 1, port_name(child.down));
      }
    }
  }

  const Topology& topology_;
  const FabricPlan& fabric_;
  const SwitchFileSettings& settings_;
  const BridgeTree& bridge_;
  const VertexId at_;
  const std::string name_;
  const Ports ports_;
  std::string text_;
};

void require_ports(const Topology& topology, VertexId at) {
  const std::size_t cables = topology.outgoing(at).size();
  if (cables == 0 || cables > kMostPorts) {
    throw PlanError(fmt::format("{} has {} cables, each on a port of its own; allowed: switches of "
                                "1 to {} ports",
                                topology.name(at), cables, kMostPorts));
  }
}

void require_rings(const Topology& topology, const FabricPlan& fabric) {
  const std::vector<VertexId>& first = fabric.rings.front().members;
  if (first.size() < 2 || first.size() > kMaxWorld) {
    throw PlanError(fmt::format("{} hosts; allowed in a ring: 2 .. {}", first.size(), kMaxWorld));
  }
  for (std::size_t ring = 1; ring < fabric.rings.size(); ++ring) {
    const auto& members = fabric.rings[ring].members;
    const auto differing = std::ranges::mismatch(first, members).in1;
    if (differing != first.end()) {
      throw PlanError(fmt::format("{} is rank {} of ring 1, and not of ring {}; allowed: rings "
                                  "whose ranks are the same, such as one ring (--rings 1)",
                                  topology.name(*differing), differing - first.begin(), ring + 1));
    }
  }
}

} // namespace

std::string_view unknown_word(std::string_view text, std::span<const std::string_view> words) {
  for (std::size_t open = text.find('{'); open != std::string_view::npos;
       open = text.find('{', open + 1)) {
    const std::size_t close = text.find('}', open);
    if (close == std::string_view::npos) {
      break;
    }
    if (std::ranges::find(words, text.substr(open + 1, close - open - 1)) == words.end()) {
      return text.substr(open, close + 1 - open);
    }
  }
  return {};
}

std::vector<SwitchFile> switch_files(const Topology& topology, const FabricPlan& fabric,
                                     const SwitchFileSettings& settings) {
  require_rings(topology, fabric);
  const BridgeTree bridge(topology, fabric.rings.front());
  std::vector<SwitchFile> files;
  for (VertexId at = topology.node_count(); at < topology.vertex_count(); ++at) {
    const std::string name = plain(topology.name(at));
    if (std::ranges::find(files, name, &SwitchFile::name) != files.end()) {
      throw PlanError(fmt::format("two switches would have the file {}.yaml; allowed: names that "
                                  "differ in letters, digits, '_', '.' or '-'",
                                  name));
    }
    require_ports(topology, at);
    files.push_back(FileText(topology, fabric, settings, bridge, at).write());
  }
  return files;
}

} // namespace weir::plan
