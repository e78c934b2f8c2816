// SPDX-License-Identifier: BSD-3-Clause

/// Events per second of lib/plan/netsim on one core, by what it simulates.

#include "measurement.hpp"
#include "netsim/region_run.hpp"
#include "netsim/schedule_run.hpp"
#include "netsim/weir_run.hpp"
#include "plan/algorithms.hpp"
#include "plan/fabric.hpp"
#include "plan/generators.hpp"

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace weir::bench {
namespace {

constexpr std::string_view kPart = "netsim";
constexpr plan::LinkTraits kLink{128'000'000'000, 150}; // 16 GB/s
constexpr std::uint64_t kMiB = 1 << 20;

/// Returns the number of events.
using Work = std::function<std::uint64_t()>;

Work torus_run(plan::Algorithm algorithm, const netsim::ScheduleSettings& settings) {
  const plan::Topology torus = plan::make_torus(8, 8, kLink);
  const plan::Plan plan = plan::make_plan(torus, algorithm);
  return [=] { return netsim::run_schedule(torus, plan.schedule, 4 * kMiB, settings).events; };
}

Work weir_run(double loss) {
  const plan::LeafSpine shape{
      .leaves = 8, .nodes_per_leaf = 8, .spines = 4, .host = kLink, .uplink = kLink};
  const plan::Topology racks = plan::make_spine_leaf(shape);
  const plan::FabricPlan plan = plan::plan_fabric(racks, plan::every_node(racks), 1);
  netsim::WeirSettings settings;
  settings.loss = loss;
  settings.mending = netsim::Mending::from_cache;
  return [=] { return netsim::run_weir(racks, plan, 8 * kMiB, settings).events; };
}

Work region_run(netsim::RegionSettings::Method method) {
  netsim::RegionSettings settings;
  settings.method = method;
  settings.table_bytes = 4096;
  return [=] { return netsim::run_region(netsim::dgx2_network(), 4 * kMiB, settings).events; };
}

std::vector<std::pair<std::string_view, Work>> all_work() {
  netsim::ScheduleSettings fifo = netsim::multitree_settings();
  netsim::ScheduleSettings channels = fifo;
  channels.virtual_channels.emplace();
  return {
      {"ring on a torus, FIFO links", torus_run(plan::Algorithm::ring, fifo)},
      {"MultiTree on a torus, FIFO links", torus_run(plan::Algorithm::multitree, fifo)},
      {"MultiTree on a torus, virtual channels", torus_run(plan::Algorithm::multitree, channels)},
      {"Weir on two levels", weir_run(0)},
      {"Weir on two levels, loss 1e-3", weir_run(1e-3)},
      {"push", region_run(netsim::RegionSettings::Method::push)},
      {"pull", region_run(netsim::RegionSettings::Method::pull)}};
}

void measure(std::string_view name, const Work& work, unsigned round) {
  std::uint64_t events = 0;
  const double seconds = cpu_seconds_of([&] { events = work(); });
  report(kPart, Case().with("work", name), round,
         {{"rate", static_cast<double>(events) / seconds / 1e6, "M events/s"},
          {"time", seconds, "s"}});
}

} // namespace
} // namespace weir::bench

int main(int argc, char** argv) {
  using namespace weir::bench;
  const Options options = read_options(argc, argv, {kPart}, {.full = 7, .quick = 3});
  const auto work = all_work();
  for (unsigned round = 0; round < options.rounds; ++round) {
    tell_progress(kPart, round, options);
    for (const auto& [name, run] : work) {
      if (Case().with("work", name).is_wanted(options)) {
        measure(name, run, round);
      }
    }
  }
  return 0;
}
