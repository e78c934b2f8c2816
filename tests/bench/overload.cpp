// SPDX-License-Identifier: BSD-3-Clause
#include "files/whole_file.hpp"
#include "inline_lab.hpp"
#include "op/float_environment.hpp"
#include "pipeline.hpp"
#include "program/operator.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace weir::bench {
namespace {

constexpr std::uint16_t kWorld = 4;
constexpr std::uint32_t kNeighboursBytes = 16u << 20;

Shape shape_of(std::uint16_t rings) {
  return {.world = kWorld, .rings = rings, .bytes = kInMemory};
}

/// With no `room` for frames that wait, they are served in the order of their arrival.
double ns_per_frame(const Workload& workload, FrameStock& stock, std::uint32_t room,
                    std::size_t backlog) {
  InlineLab lab(workload, most_on_a_port(workload.data()), room);
  lab.open_connections();
  stock.refill();
  stock.enter_sessions([&](std::uint16_t ring) { return lab.session_of(ring); });
  return seconds_of([&] { lab.run_stock(stock, backlog); }) * 1e9 /
         static_cast<double>(stock.size());
}

void measure_overload_round(const Workload& workload, const Options& options, unsigned round) {
  const auto& data = workload.data();
  const Pool pool = make_pool("bench_data", data.size(), longest_of(data));
  FrameStock stock(data, pool.get());
  const auto room = static_cast<std::uint32_t>(2 * stock.size()); // so none is dropped
  for (const std::size_t backlog : {1024, 8192, 32768}) {
    const auto parameters = Case().with("rings", workload.shape().rings).with("backlog", backlog);
    if (parameters.is_wanted(options)) {
      report("overload", parameters, round,
             {{"turns", ns_per_frame(workload, stock, room, backlog), "ns", "arrival"},
              {"arrival", ns_per_frame(workload, stock, 0, backlog), "ns"}});
    }
  }
}

double seconds_of_first_ring(const Workload& workload) {
  const auto& data = workload.data();
  const Pool pool = make_pool("bench_data", data.size(), longest_of(data));
  FrameStock stock(data, pool.get());
  InlineLab lab(workload, most_on_a_port(data), static_cast<std::uint32_t>(2 * stock.size()));
  lab.open_connections();
  stock.refill();
  stock.enter_sessions([&](std::uint16_t ring) { return lab.session_of(ring); });
  return lab.seconds_of_ring(stock, 0);
}

std::shared_ptr<const program::Operator> shipped(const std::string& name) {
  const auto text = files::read_whole(fmt::format("{}/{}.weir", WEIR_OPERATORS, name));
  return program::Operator::load(text.value());
}

} // namespace

/// Two rings for which as many frames are there. The first one sums f32. Until its frames are done
/// takes as long as with a second ring of sums, where turns are fair in time; longer, where a slow
/// program's ring takes the time of both.
void measure_neighbours(const Options& options) {
  const op::DefaultFloatEnvironment environment;
  Shape shape = shape_of(2);
  shape.bytes = kNeighboursBytes;
  const Workload usual(shape);
  for (const std::string name :
       {"f32-sum", "mxfp8-e4m3-sum", "valid-sum", "mxfp4-sum", "nvfp4-sum"}) {
    const auto parameters = Case().with("neighbour", name);
    if (!parameters.is_wanted(options)) {
      continue;
    }
    const auto loaded = shipped(name);
    shape.last_folds_by = loaded.get();
    const Workload beside(shape);
    for (unsigned round = 0; round < options.rounds; ++round) {
      tell_progress("neighbours", round, options);
      report("neighbours", parameters, round,
             {{"beside it", seconds_of_first_ring(beside) * 1e3, "ms", "beside sums"},
              {"beside sums", seconds_of_first_ring(usual) * 1e3, "ms"}});
    }
  }
}

void measure_overload(const Options& options) {
  std::vector<std::unique_ptr<Workload>> workloads;
  for (const std::uint16_t rings : {2, 10, 100}) {
    workloads.push_back(std::make_unique<Workload>(shape_of(rings)));
  }
  for (unsigned round = 0; round < options.rounds; ++round) {
    tell_progress("overload", round, options);
    for (const auto& workload : workloads) {
      measure_overload_round(*workload, options, round);
    }
  }
}

} // namespace weir::bench
