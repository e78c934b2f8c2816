// SPDX-License-Identifier: BSD-3-Clause
#include "inline_lab.hpp"
#include "pipeline.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace weir::bench {
namespace {

constexpr std::uint16_t kWorld = 4;

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

} // namespace

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
