// SPDX-License-Identifier: BSD-3-Clause
#include "plan/plan_file.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace weir::plan {
namespace {

constexpr std::string_view name_of(Operation operation) {
  switch (operation) {
  case Operation::reduce:
    return "reduce";
  case Operation::gather:
    return "gather";
  default:
    return "nop";
  }
}

/// Uses yaml-cpp, which quotes names where needed.
class Yaml {
 public:
  Yaml(std::ostream& out, const Topology& topology) : emitter_(out), topology_(topology) {}

  YAML::Emitter& emit() { return emitter_; }

  void name(std::string_view key, VertexId vertex) {
    emitter_ << YAML::Key << std::string(key) << YAML::Value << topology_.name(vertex);
  }

  void names(std::string_view key, std::span<const VertexId> vertices) {
    emitter_ << YAML::Key << std::string(key) << YAML::Value << YAML::Flow << YAML::BeginSeq;
    for (const VertexId vertex : vertices) {
      emitter_ << topology_.name(vertex);
    }
    emitter_ << YAML::EndSeq;
  }

  template <typename Value>
  void pair(std::string_view key, const Value& value) {
    emitter_ << YAML::Key << std::string(key) << YAML::Value << value;
  }

  void numbers(std::string_view key, std::initializer_list<std::uint32_t> values) {
    emitter_ << YAML::Key << std::string(key) << YAML::Value << YAML::Flow << YAML::BeginSeq;
    for (const std::uint32_t value : values) {
      emitter_ << value;
    }
    emitter_ << YAML::EndSeq;
  }

  void port(std::string_view key, LinkId link) {
    if (link != kNone && !topology_.port(link).empty()) {
      pair(key, topology_.port(link));
    }
  }

 private:
  YAML::Emitter emitter_;
  const Topology& topology_;
};

/// Each vertex's name for a YAML list in brackets. yaml-cpp adds quotes where needed, but it is
/// slow. So it is called once for each vertex, not for each of a plan's million rows.
std::vector<std::string> names_in_brackets(const Topology& topology) {
  std::vector<std::string> names;
  for (VertexId vertex = 0; vertex < topology.vertex_count(); ++vertex) {
    YAML::Emitter emitter;
    emitter << YAML::Flow << YAML::BeginSeq << topology.name(vertex) << YAML::EndSeq;
    const std::string_view text = emitter.c_str();
    names.emplace_back(text.substr(1, text.size() - 2));
  }
  return names;
}

/// A plan's text, row by row.
class PlanText {
 public:
  PlanText(std::ostream& out, const Topology& topology, const Plan& plan)
      : out_(out), plan_(plan), names_(names_in_brackets(topology)) {}

  void write() {
    add("algorithm: {}\nparticipants: [{}]\n", plan::name_of(plan_.algorithm),
        list(plan_.participants));
    add("chunks: {}\nsteps: {}\n", plan_.schedule.chunk_count, plan_.schedule.step_count);
    if (!plan_.forest.trees.empty()) {
      add("trees:\n");
      for (const Tree& tree : plan_.forest.trees) {
        write_tree(tree);
      }
    }
    add("tables:\n");
    for (const VertexId node : plan_.participants) {
      write_table(node);
    }
  }

 private:
  template <class... Values>
  void add(fmt::format_string<const Values&...> form, const Values&... values) {
    buffer_.clear();
    fmt::format_to(std::back_inserter(buffer_), form, values...);
    out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  }

  std::string list(std::span<const VertexId> vertices) const {
    std::string text;
    for (const VertexId vertex : vertices) {
      text += text.empty() ? "" : ", ";
      text += names_[vertex];
    }
    return text;
  }

  void write_tree(const Tree& tree) {
    add("  - root: {}\n    edges:\n", names_[tree.root]);
    for (const TreeEdge& edge : tree.edges) {
      add("      - {{parent: {}, child: {}, step: {}}}\n", names_[edge.parent], names_[edge.child],
          edge.step);
    }
  }

  void write_table(VertexId node) {
    add("  - node: {}\n    rows:\n", names_[node]);
    for (const Entry& row : plan_.schedule.table(node)) {
      write_row(row);
    }
  }

  void write_row(const Entry& row) {
    add("      - {{op: {}, step: {}", name_of(row.operation), row.step);
    if (row.operation != Operation::nop) {
      add(", flow: {}", row.flow);
      if (row.parent != kNone) {
        add(", parent: {}", names_[row.parent]);
      }
      add(", children: [{}], chunks: [{}, {}]", list(children_of(plan_.schedule, row)),
          row.chunks.first, row.chunks.count);
    }
    add("}}\n");
  }

  std::ostream& out_;
  const Plan& plan_;
  std::vector<std::string> names_; // by vertex
  fmt::memory_buffer buffer_;
};

void write_child(Yaml& yaml, const Topology& topology, const FabricChild& child) {
  yaml.emit() << YAML::Flow << YAML::BeginMap;
  yaml.name(topology.is_node(child.vertex) ? "node" : "switch", child.vertex);
  yaml.numbers("ranks", {child.first_rank, child.first_rank + child.rank_count - 1});
  yaml.port("port", child.down);
  yaml.emit() << YAML::EndMap;
}

void write_switch(Yaml& yaml, const Topology& topology, const FabricSwitch& one) {
  yaml.emit() << YAML::BeginMap;
  yaml.name("name", one.vertex);
  if (one.parent != kNone) {
    yaml.name("parent", one.parent);
    yaml.port("parent_port", one.up);
  }
  yaml.numbers("ranks", {one.first_rank, one.first_rank + one.rank_count - 1});
  yaml.emit() << YAML::Key << "children" << YAML::Value << YAML::BeginSeq;
  for (const FabricChild& child : one.children) {
    write_child(yaml, topology, child);
  }
  yaml.emit() << YAML::EndSeq << YAML::EndMap;
}

} // namespace

void write_plan(std::ostream& out, const Topology& topology, const Plan& plan) {
  PlanText(out, topology, plan).write();
}

void write_fabric(std::ostream& out, const Topology& topology, const FabricPlan& fabric) {
  Yaml yaml(out, topology);
  yaml.emit() << YAML::BeginMap << YAML::Key << "rings" << YAML::Value << YAML::BeginSeq;
  for (std::size_t ring = 0; ring < fabric.rings.size(); ++ring) {
    yaml.emit() << YAML::BeginMap;
    yaml.pair("id", ring + 1);
    yaml.names("members", fabric.rings[ring].members);
    yaml.emit() << YAML::Key << "switches" << YAML::Value << YAML::BeginSeq;
    for (const FabricSwitch& one : fabric.rings[ring].switches) {
      write_switch(yaml, topology, one);
    }
    yaml.emit() << YAML::EndSeq << YAML::EndMap;
  }
  yaml.emit() << YAML::EndSeq << YAML::EndMap;
  out << '\n';
}

} // namespace weir::plan
