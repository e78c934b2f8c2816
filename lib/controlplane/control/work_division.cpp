// SPDX-License-Identifier: BSD-3-Clause
#include "control/work_division.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

namespace weir::control {
namespace {

/// The parallel rings of some hosts.
struct Job {
  std::vector<std::uint32_t> rings; // ids
  std::set<std::size_t> workers;
};

std::vector<Job> jobs_of(const Placement& placement, const ring::RingSet& rings) {
  std::map<std::vector<wire::IpAddress>, Job> jobs;
  for (const std::uint16_t ring : rings.present()) {
    std::vector<wire::IpAddress> hosts;
    for (const ring::Member& member : rings.rings()[ring].spec().members) {
      hosts.push_back(member.ip);
    }
    Job& job = jobs[hosts];
    job.rings.push_back(rings.rings()[ring].spec().id);
    job.workers.insert(placement.worker_of_ring[ring]);
  }
  std::vector<Job> all;
  for (auto& [hosts, job] : jobs) {
    all.push_back(std::move(job));
  }
  std::ranges::sort(all, {}, [](const Job& job) { return job.rings.front(); });
  return all;
}

std::string rings_of(const Placement::DataLcore& lcore, const ring::RingSet& rings) {
  std::vector<std::uint32_t> ids;
  for (const std::uint16_t ring : lcore.rings) {
    ids.push_back(rings.rings()[ring].spec().id);
  }
  return fmt::format("lcore {}: {} {}", lcore.id, ids.size() == 1 ? "ring" : "rings",
                     fmt::join(ids, ", "));
}

} // namespace

std::vector<std::string> division_of(const Placement& placement, const ring::RingSet& rings) {
  std::vector<std::string> lines;
  std::vector<unsigned> idle;
  for (const Placement::DataLcore& lcore : placement.lcores) {
    if (!lcore.rings.empty()) {
      lines.push_back(rings_of(lcore, rings));
    } else if (lcore.works) {
      idle.push_back(lcore.id);
    }
  }
  if (placement.workers() < 2 || lines.empty()) {
    return {};
  }
  for (const Job& job : jobs_of(placement, rings)) {
    if (job.workers.size() == 1 && !idle.empty()) {
      const std::size_t id = placement.lcores[*job.workers.begin()].id;
      lines.push_back(fmt::format(
          "warning: ring {} has one worker, lcore {}, and no ring is for {} {}, which only {} "
          "reductions; allowed: parallel: {} for this ring, and its ranks name all these rings",
          job.rings.front(), id, idle.size() == 1 ? "lcore" : "lcores", fmt::join(idle, ", "),
          idle.size() == 1 ? "makes" : "make", job.rings.size() + idle.size()));
    }
  }
  return lines;
}

} // namespace weir::control
