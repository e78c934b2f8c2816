// SPDX-License-Identifier: BSD-3-Clause
#include "multitree_networks.hpp"

#include "inputs.hpp"
#include "netsim/schedule_run.hpp"
#include "plan/algorithms.hpp"
#include "plan/generators.hpp"
#include "switch_run.hpp"

#include <fmt/format.h>

#include <map>
#include <stdexcept>
#include <utility>

namespace weir::figures::multitree {
namespace {

constexpr plan::LinkTraits kLink{kLinkBitsPerSecond, kLinkLatencyNs};
constexpr std::uint32_t kNodesPerSwitch = 4; // of BiGraph
constexpr std::uint32_t kLeaves = 8;

plan::Topology make(const Network& network) {
  switch (network.shape) {
  case Shape::torus:
    return plan::make_torus(network.size, network.size, kLink);
  case Shape::mesh:
    return plan::make_mesh(network.size, network.size, kLink);
  case Shape::dgx2:
    return plan::make_dgx2(kLink, kLink);
  case Shape::fat_tree:
    return plan::make_fat_tree(kLeaves, network.size / kLeaves, kLink);
  case Shape::bigraph:
    return plan::make_bigraph(kNodesPerSwitch, network.size / kNodesPerSwitch, kLink, kLink);
  }
  throw std::invalid_argument("a network of no shape");
}

/// The authors' ring crosses switches at every hop; on grids it is the Hamiltonian cycle.
plan::Algorithm algorithm_of(Way way, bool is_direct) {
  switch (way) {
  case Way::ring:
    return is_direct ? plan::Algorithm::ring : plan::Algorithm::ring_across;
  case Way::double_tree:
    return plan::Algorithm::double_binary_tree;
  case Way::ring_2d:
    return plan::Algorithm::ring_2d;
  case Way::hdrm:
    return plan::Algorithm::hdrm;
  case Way::multitree:
  case Way::message:
    return plan::Algorithm::multitree;
  }
  throw std::invalid_argument("no way to all-reduce");
}

/// East, west, south, north.
std::uint32_t direction_of(const plan::Grid& grid, plan::VertexId from, plan::VertexId to) {
  const std::uint32_t row = from / grid.columns;
  if (row == to / grid.columns) {
    return to == row * grid.columns + (from + 1) % grid.columns ? 0 : 1;
  }
  return to == (from + grid.columns) % (grid.rows * grid.columns) ? 2 : 3;
}

/// A flow's root is the node that sends first in its all-gather.
void number_by_root(const plan::Grid& grid, plan::Schedule& schedule) {
  std::map<plan::FlowId, const plan::Message*> first;
  for (const plan::Message& message : schedule.messages) {
    const plan::Message*& known = first[message.flow];
    if (message.operation == plan::Operation::gather &&
        (known == nullptr || message.step < known->step)) {
      known = &message;
    }
  }
  std::map<plan::FlowId, plan::FlowId> numbers;
  for (const auto& [flow, message] : first) {
    numbers[flow] = 4 * message->from + direction_of(grid, message->from, message->to);
  }
  for (plan::Message& message : schedule.messages) {
    message.flow = numbers.at(message.flow);
  }
}

/// MULTITREE's nodes keep step by NOPs; the others start when they can (§IV-A).
netsim::ScheduleSettings settings_of(const Run& run, bool is_direct) {
  using Arbitration = netsim::VirtualChannels::Arbitration;
  netsim::ScheduleSettings settings = netsim::multitree_settings();
  settings.framing.packets_at_once = run.packets_at_once;
  if (is_direct || run.buffers == Buffers::with_credits) {
    settings.virtual_channels.emplace();
    settings.virtual_channels->arbitration =
        run.order == Order::in_step ? Arbitration::by_step : Arbitration::by_arrival;
  }
  if (run.way == Way::multitree || run.way == Way::message) {
    settings.nodes.lockstep = netsim::NodeTraits::Lockstep::estimated;
    settings.nodes.step_start = netsim::NodeTraits::StepStart::all_channels;
  }
  if (run.reduction == Reduction::free) {
    settings.nodes.reduction_time = 0;
  }
  if (run.way == Way::message) {
    settings.framing.headers = netsim::Framing::Headers::every_message;
  }
  return settings;
}

} // namespace

std::string name_of(const Network& network) {
  static const std::map<Shape, std::string_view> kNames{{Shape::torus, "torus"},
                                                        {Shape::mesh, "mesh"},
                                                        {Shape::dgx2, "DGX-2"},
                                                        {Shape::fat_tree, "fat tree"},
                                                        {Shape::bigraph, "BiGraph"}};
  return fmt::format("{} {}", kNames.at(network.shape), network.size);
}

std::string_view name_of(Way way) {
  static const std::map<Way, std::string_view> kNames{
      {Way::ring, "RING"}, {Way::double_tree, "DBTREE"},  {Way::ring_2d, "2D-RING"},
      {Way::hdrm, "HDRM"}, {Way::multitree, "MULTITREE"}, {Way::message, "MULTITREEMSG"}};
  return kNames.at(way);
}

plan::Topology topology_of(const Network& network, Mutation mutation) {
  return mutated(make(network), mutation);
}

double microseconds(const Run& run) {
  static std::map<Run, double> known;
  const auto found = known.find(run);
  if (found != known.end()) {
    return found->second;
  }
  const plan::Topology topology = topology_of(run.network, run.mutation);
  plan::Plan plan = plan::make_plan(topology, algorithm_of(run.way, topology.is_direct()));
  if (run.flows == FlowNumbers::by_root) {
    number_by_root(*topology.grid, plan.schedule);
  }
  const netsim::ScheduleResult result = netsim::run_schedule(
      topology, plan.schedule, run.bytes, settings_of(run, topology.is_direct()));
  return known.emplace(run, netsim::to_us(result.duration)).first->second;
}

} // namespace weir::figures::multitree
