// SPDX-License-Identifier: BSD-3-Clause
#include "plan/plan_file.hpp"

#include <yaml-cpp/yaml.h>

#include <string>
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

/// yaml-cpp quotes what a name needs quotes for.
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

void write_tree(Yaml& yaml, const Tree& tree) {
  yaml.emit() << YAML::BeginMap;
  yaml.name("root", tree.root);
  yaml.emit() << YAML::Key << "edges" << YAML::Value << YAML::BeginSeq;
  for (const TreeEdge& edge : tree.edges) {
    yaml.emit() << YAML::Flow << YAML::BeginMap;
    yaml.name("parent", edge.parent);
    yaml.name("child", edge.child);
    yaml.pair("step", edge.step);
    yaml.emit() << YAML::EndMap;
  }
  yaml.emit() << YAML::EndSeq << YAML::EndMap;
}

void write_row(Yaml& yaml, const Schedule& schedule, const Entry& row) {
  yaml.emit() << YAML::Flow << YAML::BeginMap;
  yaml.pair("op", std::string(name_of(row.operation)));
  yaml.pair("step", row.step);
  if (row.operation != Operation::nop) {
    yaml.pair("flow", row.flow);
    if (row.parent != kNone) {
      yaml.name("parent", row.parent);
    }
    yaml.names("children", children_of(schedule, row));
    yaml.numbers("chunks", {row.chunks.first, row.chunks.count});
  }
  yaml.emit() << YAML::EndMap;
}

void write_tables(Yaml& yaml, const Plan& plan) {
  yaml.emit() << YAML::Key << "tables" << YAML::Value << YAML::BeginSeq;
  for (const VertexId node : plan.participants) {
    yaml.emit() << YAML::BeginMap;
    yaml.name("node", node);
    yaml.emit() << YAML::Key << "rows" << YAML::Value << YAML::BeginSeq;
    for (const Entry& row : plan.schedule.table(node)) {
      write_row(yaml, plan.schedule, row);
    }
    yaml.emit() << YAML::EndSeq << YAML::EndMap;
  }
  yaml.emit() << YAML::EndSeq;
}

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
  Yaml yaml(out, topology);
  yaml.emit() << YAML::BeginMap;
  yaml.pair("algorithm", std::string(plan::name_of(plan.algorithm)));
  yaml.names("participants", plan.participants);
  yaml.pair("chunks", plan.schedule.chunk_count);
  yaml.pair("steps", plan.schedule.step_count);
  if (!plan.forest.trees.empty()) {
    yaml.emit() << YAML::Key << "trees" << YAML::Value << YAML::BeginSeq;
    for (const Tree& tree : plan.forest.trees) {
      write_tree(yaml, tree);
    }
    yaml.emit() << YAML::EndSeq;
  }
  write_tables(yaml, plan);
  yaml.emit() << YAML::EndMap;
  out << '\n';
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
