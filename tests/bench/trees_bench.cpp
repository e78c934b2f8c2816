// SPDX-License-Identifier: BSD-3-Clause

/// All-reduces over racks by a tree of switches that add, by one such switch for all hosts, and by
/// the hosts alone, where uplinks are thinner than what is below them and links lose frames. In
/// virtual time: rounds differ by their seed alone.

#include "measurement.hpp"
#include "rack_job.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace weir::bench {
namespace {

constexpr std::string_view kPart = "trees";

/// Racks, and hosts of each.
constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, 8> kShapes{
    {{2, 1}, {2, 2}, {2, 4}, {4, 2}, {4, 4}, {2, 16}, {8, 4}, {8, 8}}};
constexpr std::size_t kQuickShapes = 4;
constexpr std::array<std::uint32_t, 3> kOversubscriptions{1, 2, 4};
constexpr std::array<std::uint32_t, 3> kLosses{0, 100, 1000};

Case case_of(const RackJob& job, std::string_view way) {
  return Case()
      .with("hosts", fmt::format("{} in {}", job.ranks(), job.racks))
      .with("ranks", job.ranks())
      .with("racks", job.racks)
      .with("oversubscription", job.oversubscription)
      .with("loss ppm", job.loss_ppm)
      .with("way", way);
}

/// All ways, so that each has the tree of the same losses beside it.
void measure(const RackJob& job, const Options& options, unsigned round) {
  double tree = 0;
  for (const WayRow& row : kWays) {
    const Case one = case_of(job, row.name);
    if (row.way != Way::tree && !one.is_wanted(options)) {
      continue;
    }
    const netsim::WeirResult result = reduce(row.way, job, topology_of(row.way, job));
    const double time = link_times(result.duration, job);
    tree = row.way == Way::tree ? time : tree;
    if (one.is_wanted(options)) {
      report(kPart, one, round, {{"time", time, "link times"}, {"lead", time / tree, "trees"}});
    }
  }
}

/// Without loss all rounds are alike.
void measure_round(const Options& options, unsigned round) {
  const std::size_t shapes = options.effort == Effort::quick ? kQuickShapes : kShapes.size();
  for (std::size_t shape = 0; shape < shapes; ++shape) {
    const auto& [racks, hosts] = kShapes[shape];
    for (const std::uint32_t oversubscription : kOversubscriptions) {
      for (const std::uint32_t loss : kLosses) {
        if (round == 0 || loss != 0) {
          measure({racks, hosts, oversubscription, loss, round + 1}, options, round);
        }
      }
    }
  }
}

} // namespace
} // namespace weir::bench

int main(int argc, char** argv) {
  using namespace weir::bench;
  const Options options = read_options(argc, argv, {kPart}, {.full = 5, .quick = 1});
  for (unsigned round = 0; round < options.rounds; ++round) {
    tell_progress(kPart, round, options);
    measure_round(options, round);
  }
  return 0;
}
