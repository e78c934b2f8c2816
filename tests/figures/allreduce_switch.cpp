// SPDX-License-Identifier: BSD-3-Clause

/// Figures of AllReduce-Switch (TCAS-I 2021): a star of 2 to 8 hosts at 10 Gbit/s.

#include "allreduce_switch_simulated.hpp"
#include "figure.hpp"
#include "flow_level.hpp"
#include "inputs.hpp"
#include "support/frame_builder.hpp"

#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

namespace weir::figures::allreduce_switch {
namespace {

constexpr std::uint32_t kHosts = kMostHosts;
constexpr std::uint32_t kTreeArity = 2;
constexpr double kTensor = 1; // number of tensors, so that rates are in tensors per second
constexpr double kStep = 1;   // seconds of a step, whatever it carries
constexpr double kFree = 0;

/// An algorithm as flows, with as many links as it needs. The traffic of its critical node is the
/// result.
struct Shape {
  std::vector<double> rates;
  std::vector<std::uint32_t> entered; // node at the end of each link
  std::vector<Phase> phases;
};

std::uint32_t levels_of(std::uint32_t hosts, std::uint32_t arity) {
  std::uint32_t levels = 0;
  for (std::uint32_t reached = 1; reached < hosts; reached *= arity) {
    ++levels;
  }
  return levels;
}

/// A pipelined reduction up a tree and a broadcast down it. Each takes one step per level, and no
/// edge is used by both at once.
Shape tree(double latency, double bytes) {
  Shape shape;
  std::vector<Flow> up;
  std::vector<Flow> down;
  for (std::uint32_t child = 1; child <= kTreeArity; ++child) {
    shape.rates.insert(shape.rates.end(), {1, 1});
    shape.entered.insert(shape.entered.end(), {0, child});
    up.push_back({{2 * child - 2}, bytes});
    down.push_back({{2 * child - 1}, bytes});
  }
  const double levels = levels_of(kHosts, kTreeArity);
  shape.phases = {{levels * latency, up}, {levels * latency, down}};
  return shape;
}

Shape ring(double latency, double bytes) {
  Shape shape;
  std::vector<Flow> flows;
  for (std::uint32_t host = 0; host < kHosts; ++host) {
    shape.rates.push_back(1);
    shape.entered.push_back((host + 1) % kHosts);
    flows.push_back({{host}, bytes / kHosts});
  }
  shape.phases = {{latency, flows, 2 * (kHosts - 1)}};
  return shape;
}

/// Every host sends to the switch, node `kHosts`, and receives at the same time.
Shape through_switch(double latency, double bytes) {
  Shape shape;
  std::vector<Flow> flows;
  for (std::uint32_t host = 0; host < kHosts; ++host) {
    shape.rates.insert(shape.rates.end(), {1, 1});
    shape.entered.insert(shape.entered.end(), {kHosts, host});
    flows.push_back({{2 * host, 2 * host + 1}, bytes});
  }
  shape.phases = {{latency, flows}};
  return shape;
}

/// Table II: the columns of delay, bandwidth, and the traffic of the critical node.
void table_two(const Settings& settings, Results& results) {
  struct Row {
    std::string_view name;
    Shape (*make)(double latency, double bytes);
  };

  constexpr double kNothing = 1e-9; // of a tensor: only the step counts
  for (const Row& row : {Row{"tree", tree}, Row{"ring", ring}, Row{"switch", through_switch}}) {
    const Shape small = row.make(kStep, kNothing);
    const Shape large = row.make(kFree, kTensor);
    const double delay = seconds_of(small.rates, small.phases, settings.mutation);
    const double seconds = seconds_of(large.rates, large.phases, settings.mutation);
    const double need = busiest_node(large.rates, large.entered, large.phases.front().flows);
    results.value(fmt::format("delay.{}", row.name), delay / kStep);
    results.value(fmt::format("bandwidth.{}", row.name), kTensor / seconds);
    results.value(fmt::format("critical.{}", row.name), need);
  }
}

/// §III-A: the payload's share of a frame without its FCS, counted in frames built by
/// tests/support.
void payload_shares(const Settings& /*settings*/, Results& results) {
  struct Row {
    std::string_view name;
    std::uint8_t opcode;
    std::uint32_t headers_in_payload;
  };

  // IBTA table 38: RC WRITE FIRST, MIDDLE, LAST, LAST with immediate.
  for (const Row& row : {Row{"first", 0x06, kInaHeaderBytes}, Row{"middle", 0x07, 0},
                         Row{"last", 0x08, 0}, Row{"last with immediate", 0x09, 0}}) {
    test::FrameSpec spec;
    spec.network = test::Network::v1;
    spec.opcode = row.opcode;
    spec.payload.resize(kPayloadBytes);
    const test::Built frame = test::build(spec);
    results.value(fmt::format("share.{}", row.name),
                  static_cast<double>(kPayloadBytes - row.headers_in_payload) /
                      static_cast<double>(frame.bytes.size()));
  }
}

constexpr std::array kFigures{
    Figure{"AS1", table_two},      Figure{"AS2", models},      Figure{"AS3", by_hosts},
    Figure{"AS5", payload_shares}, Figure{"AS8", arbitration},
};

} // namespace
} // namespace weir::figures::allreduce_switch

std::span<const weir::figures::Figure> weir::figures::allreduce_switch_figures() {
  return allreduce_switch::kFigures;
}
