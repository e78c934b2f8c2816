// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline.hpp"
#include "scaling_lab.hpp"

#include <rte_lcore.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace weir::bench {
namespace {

using control::Role;

/// Frames are in memory, where several lcores share what they wait for.
constexpr Shape kShape{.bytes = kInMemory};

const std::vector<Role> kAll{Role::rx, Role::worker, Role::tx};
const std::vector<Role> kEnds{Role::rx, Role::tx};

void add(Team& team, std::size_t lcores, const std::vector<Role>& roles) {
  team.lcores.insert(team.lcores.end(), lcores, roles);
}

/// The ways in which people would place roles on so many lcores.
std::vector<Team> teams_of(std::size_t lcores) {
  std::vector<Team> teams{{"all", {}}};
  add(teams.back(), lcores, kAll);
  if (lcores >= 2) {
    add(teams.emplace_back(Team{"rx+tx|worker", {}}), lcores - 1, kEnds);
    add(teams.back(), 1, {Role::worker});
  }
  if (lcores >= 4) {
    add(teams.emplace_back(Team{"rx+tx|workers", {}}), lcores / 2, kEnds);
    add(teams.back(), lcores - lcores / 2, {Role::worker});
  }
  if (lcores >= 3) {
    add(teams.emplace_back(Team{"rx|workers|tx", {}}), 1, {Role::rx});
    add(teams.back(), lcores - 2, {Role::worker});
    add(teams.back(), 1, {Role::tx});
  }
  return teams;
}

double frames_per_second(const Workload& workload, const Team& team, FrameStock& stock) {
  stock.refill();
  return static_cast<double>(stock.size()) / ScalingLab(workload, team).seconds_of(stock);
}

/// All teams that this machine has lcores for, on one workload.
void measure(const Workload& workload, const Options& options, unsigned round) {
  const auto& data = workload.data();
  const Pool pool = make_pool("bench_data", data.size(), longest_of(data));
  FrameStock stock(data, pool.get());
  const double alone = frames_per_second(workload, teams_of(1).front(), stock) / 1e6;
  for (std::size_t lcores = 1; lcores <= rte_lcore_count(); lcores *= 2) {
    for (const Team& team : teams_of(lcores)) {
      const auto parameters = Case()
                                  .with("lcores", lcores)
                                  .with("roles", team.name)
                                  .with("rings", workload.shape().rings);
      if (parameters.is_wanted(options)) {
        const double rate = frames_per_second(workload, team, stock) / 1e6;
        report("scaling", parameters, round,
               {{"weir", rate, "Mpps", "linear"},
                {"linear", alone * static_cast<double>(lcores), "Mpps"}});
      }
    }
  }
}

} // namespace

void measure_scaling(const Options& options) {
  if (rte_lcore_count() == 1) {
    std::fprintf(stderr, "scaling: left out but for one lcore: this process may use one CPU\n");
  }
  std::vector<std::unique_ptr<Workload>> workloads;
  for (const unsigned rings : {1u, 2 * rte_lcore_count()}) {
    Shape shape = kShape;
    shape.rings = static_cast<std::uint16_t>(rings);
    workloads.push_back(std::make_unique<Workload>(shape));
  }
  for (unsigned round = 0; round < options.rounds; ++round) {
    tell_progress("scaling", round, options);
    for (const auto& workload : workloads) {
      measure(*workload, options, round);
    }
  }
}

} // namespace weir::bench
