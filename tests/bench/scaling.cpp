// SPDX-License-Identifier: BSD-3-Clause
#include "bare_pair.hpp"
#include "inline_lab.hpp"
#include "pipeline.hpp"
#include "scaling_lab.hpp"

#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_pause.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir::bench {
namespace {

using config::Role;

/// Frames are in memory, where several lcores share the waiting time.
constexpr Shape kScaledShape{.bytes = kInMemory};

/// Frames stay in a cache of the last level, and are enough to last longer than threads take to
/// start.
constexpr std::uint32_t kJobBytes = 16U << 20;

const std::vector<Role> kAll{Role::rx, Role::worker, Role::tx};
const std::vector<Role> kEnds{Role::rx, Role::tx};

void add(Team& team, std::size_t lcores, const std::vector<Role>& roles) {
  team.lcores.insert(team.lcores.end(), lcores, roles);
}

/// The usual placements of roles on this many lcores.
std::vector<Team> teams_of(std::size_t lcores) {
  std::vector<Team> teams{{"all", {}}};
  add(teams.back(), lcores, kAll);
  if (lcores >= 2) {
    add(teams.emplace_back(Team{"all, steered", {}, Reception::by_ring}), lcores, kAll);
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
  return ScalingLab(workload, team).frames_per_second(stock);
}

/// A cache line that two lcores take from each other, as in every hand-off.
class Ball {
 public:
  /// Nanoseconds from this lcore to the next and back.
  double round_trip_ns() {
    const unsigned partner = rte_get_next_lcore(rte_lcore_id(), 1, 1);
    rte_eal_remote_launch(return_it, this, partner);
    const double seconds = seconds_of([this] {
      for (std::uint32_t trip = 0; trip < kTrips; ++trip) {
        at_.store(2 * trip + 1, std::memory_order_release);
        wait_for(2 * trip + 2);
      }
    });
    rte_eal_wait_lcore(partner);
    return seconds * 1e9 / kTrips;
  }

 private:
  static constexpr std::uint32_t kTrips = 100'000;

  void wait_for(std::uint32_t number) const {
    while (at_.load(std::memory_order_acquire) != number) {
      rte_pause();
    }
  }

  static int return_it(void* ball) {
    auto* self = static_cast<Ball*>(ball);
    for (std::uint32_t trip = 0; trip < kTrips; ++trip) {
      self->wait_for(2 * trip + 1);
      self->at_.store(2 * trip + 2, std::memory_order_release);
    }
    return 0;
  }

  alignas(64) std::atomic<std::uint32_t> at_{0};
};

/// `seconds` sends the stock, which has arrived at the ports, and returns how long that took.
template <typename Seconds>
double bare_frames_per_second(RingPorts& ports, FrameStock& stock, Seconds&& seconds) {
  stock.refill();
  BareSwitch::describe(stock);
  stock.arrive_at(ports);
  return static_cast<double>(stock.size()) / seconds();
}

/// What a switch could reach that only adds, over two lcores.
void measure_bare_pair(const Workload& workload, FrameStock& stock, const Options& options,
                       unsigned round) {
  RingPorts ports(workload.ports(), most_on_a_port(workload.data()));
  using Division = BarePair::Division;
  for (const auto& [name, division] :
       {std::pair{"bare, receiver checks", Division::receiver_checks},
        {"bare, adder checks", Division::adder_checks},
        {"bare, slots in turn", Division::slots_in_turn}}) {
    const auto parameters =
        Case().with("lcores", 2).with("roles", name).with("rings", workload.shape().rings);
    if (parameters.is_wanted(options)) {
      const double round_trip = Ball().round_trip_ns();
      BareSwitch bare(workload);
      BarePair pair(workload, ports, division);
      const double alone = bare_frames_per_second(ports, stock, [&] {
        return seconds_of([&] { bare.run_until_sent(ports, stock.size()); });
      });
      const double rate =
          bare_frames_per_second(ports, stock, [&] { return pair.seconds_of(stock); });
      report("scaling", parameters, round,
             {{"bare", rate / 1e6, "Mpps", "bare_linear"},
              {"bare_linear", 2 * alone / 1e6, "Mpps"},
              {"line_round_trip", round_trip, "ns"}});
    }
  }
}

/// Measures all teams for which this machine has lcores, on one workload.
void measure_scaling_round(const Workload& workload, const Options& options, unsigned round) {
  const auto& data = workload.data();
  const Pool pool = make_pool("bench_data", data.size(), longest_of(data));
  FrameStock stock(data, pool.get());
  const double round_trip = rte_lcore_count() > 1 ? Ball().round_trip_ns() : 0;
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
                {"linear", alone * static_cast<double>(lcores), "Mpps"},
                {"line_round_trip", round_trip, "ns"}});
      }
    }
  }
  if (workload.shape().rings == 1 && rte_lcore_count() > 1) {
    measure_bare_pair(workload, stock, options, round);
  }
}

/// One job's parallel rings beside as many jobs, and beside one ring, each lcore with all roles.
void measure_job_round(std::uint16_t payload, std::size_t lcores, const Options& options,
                       unsigned round) {
  const auto workload_of = [&](std::size_t rings, Hosts hosts) {
    return Workload({.rings = static_cast<std::uint16_t>(rings),
                     .payload = payload,
                     .bytes = kJobBytes,
                     .hosts = hosts});
  };
  const auto rate_of = [&](const Workload& workload, std::size_t count, Reception reception) {
    const auto& data = workload.data();
    const Pool pool = make_pool("bench_data", data.size(), longest_of(data));
    FrameStock stock(data, pool.get());
    Team team{"all", {}, reception};
    add(team, count, kAll);
    ScalingLab lab(workload, team);
    return lab.frames_per_second(stock) / 1e6;
  };
  const double round_trip = Ball().round_trip_ns();
  const double alone = rate_of(workload_of(1, Hosts::apart), 1, Reception::by_port);
  const double linear = alone * static_cast<double>(lcores);
  for (const auto& [name, reception] :
       {std::pair{"by port", Reception::by_port}, {"steered", Reception::by_ring}}) {
    const auto parameters =
        Case().with("payload", payload).with("lcores", lcores).with("frames come", name);
    if (!parameters.is_wanted(options)) {
      continue;
    }
    report(
        "job", parameters, round,
        {{"one ring", rate_of(workload_of(1, Hosts::apart), lcores, reception), "Mpps", "linear"},
         {"parallel rings", rate_of(workload_of(lcores, Hosts::shared), lcores, reception), "Mpps",
          "linear"},
         {"separate jobs", rate_of(workload_of(lcores, Hosts::apart), lcores, reception), "Mpps",
          "linear"},
         {"linear", linear, "Mpps"},
         {"line_round_trip", round_trip, "ns"}});
  }
}

} // namespace

void measure_scaling(const Options& options) {
  if (rte_lcore_count() == 1) {
    std::fprintf(stderr, "scaling: left out but for one lcore: this process may use one CPU\n");
  }
  std::vector<std::unique_ptr<Workload>> workloads;
  constexpr unsigned kMostRings = 8;
  for (unsigned rings = 1; rings <= std::max(kMostRings, rte_lcore_count()); rings *= 2) {
    Shape shape = kScaledShape;
    shape.rings = static_cast<std::uint16_t>(rings);
    workloads.push_back(std::make_unique<Workload>(shape));
  }
  for (unsigned round = 0; round < options.rounds; ++round) {
    tell_progress("scaling", round, options);
    for (const auto& workload : workloads) {
      measure_scaling_round(*workload, options, round);
    }
  }
}

void measure_job(const Options& options) {
  if (rte_lcore_count() == 1) {
    std::fprintf(stderr, "job: left out: this process may use one CPU\n");
    return;
  }
  for (unsigned round = 0; round < options.rounds; ++round) {
    tell_progress("job", round, options);
    for (const std::uint16_t payload : {1024, 4096}) {
      for (std::size_t lcores = 2; lcores <= rte_lcore_count(); lcores *= 2) {
        measure_job_round(payload, lcores, options, round);
      }
    }
  }
}

} // namespace weir::bench
