// SPDX-License-Identifier: BSD-3-Clause
#include "netreduce_cluster.hpp"

#include <cmath>

namespace weir::figures::netreduce {
namespace {

/// Appendix A: flat ring.
double flat_ring(const Cluster& c) {
  return 2 * (c.gpus - 1) * c.latency + 2 * (c.gpus - 1) / c.gpus * c.bytes / c.inter;
}

/// Appendix A: Tencent's reduce, ring over masters, broadcast.
double tencent(const Cluster& c) {
  const double n = c.per_machine;
  return (n + 3 * std::log2(n) - 3 + 2 * c.gpus / n) * c.latency +
         (4 * (n - 1) / (n * c.intra) + 2 * (c.gpus - n) / (c.gpus * c.inter)) * c.bytes;
}

/// Appendix A: NetReduce in parallel on all GPUs of a machine.
double parallel_netreduce(const Cluster& c) {
  const double n = c.per_machine;
  return (2 * n - 1) * c.latency + (2 * (n - 1) / (n * c.intra) + 1 / c.inter) * c.bytes;
}

std::vector<Phase> flat_ring_phases(const Cluster& c, const Machines& machines) {
  const auto gpus = static_cast<std::uint32_t>(c.gpus);
  std::vector<Flow> flows;
  for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
    flows.push_back(machines.between(gpu, (gpu + 1) % gpus, c.bytes / c.gpus));
  }
  return {{c.latency, flows, 2 * (gpus - 1)}};
}

/// Recursive halving and a binomial gather to the masters, or the reverse: one phase per distance,
/// each with half of the bytes of the one before.
std::vector<Phase> halving(const Cluster& c, const Machines& machines) {
  std::vector<Phase> phases;
  const auto n = static_cast<std::uint32_t>(c.per_machine);
  double bytes = c.bytes;
  for (std::uint32_t distance = n / 2; distance > 0; distance /= 2) {
    bytes /= 2;
    phases.push_back({c.latency, machines.inside([=](auto gpu) { return gpu ^ distance; }, bytes)});
  }
  return phases;
}

std::vector<Phase> tencent_phases(const Cluster& c, const Machines& machines) {
  const auto n = static_cast<std::uint32_t>(c.per_machine);
  std::vector<Phase> phases;
  for (int pass = 0; pass < 3; ++pass) { // reduce-scatter, gather to the master, scatter from it
    const std::vector<Phase> more = halving(c, machines);
    phases.insert(phases.end(), more.begin(), more.end());
  }
  std::vector<Flow> masters;
  const std::uint32_t count = machines.machines();
  for (std::uint32_t machine = 0; machine < count; ++machine) {
    masters.push_back(machines.between(machine * n, (machine + 1) % count * n, c.bytes / count));
  }
  phases.push_back({c.latency, masters, 2 * (count - 1)});
  phases.push_back({c.latency, machines.next_inside(c.bytes / n), n - 1});
  return phases;
}

std::vector<Phase> netreduce_phases(const Cluster& c, const Machines& machines) {
  const auto n = static_cast<std::uint32_t>(c.per_machine);
  const Phase inside{c.latency, machines.next_inside(c.bytes / n), n - 1};
  std::vector<Flow> through;
  for (std::uint32_t machine = 0; machine < machines.machines(); ++machine) {
    for (std::uint32_t ring = 0; ring < n; ++ring) {
      through.push_back(machines.by_switch(machine, c.bytes / n));
    }
  }
  return {inside, {c.latency, through}, inside};
}

} // namespace

Machines::Machines(const Cluster& cluster)
    : gpus_(static_cast<std::uint32_t>(cluster.gpus)),
      per_machine_(static_cast<std::uint32_t>(cluster.per_machine)),
      rates_(2 * std::size_t{gpus_}, cluster.intra) {
  rates_.resize(rates_.size() + 2 * std::size_t{machines()}, cluster.inter);
}

Flow Machines::between(std::uint32_t from, std::uint32_t to, double bytes) const {
  const std::uint32_t source = from / per_machine_;
  const std::uint32_t target = to / per_machine_;
  if (source == target) {
    return {{2 * from, 2 * to + 1}, bytes};
  }
  return {{2 * (gpus_ + source), 2 * (gpus_ + target) + 1}, bytes};
}

Flow Machines::by_switch(std::uint32_t machine, double bytes) const {
  return {{2 * (gpus_ + machine), 2 * (gpus_ + machine) + 1}, bytes};
}

std::vector<Flow> Machines::inside(const std::function<std::uint32_t(std::uint32_t)>& target,
                                   double bytes) const {
  std::vector<Flow> flows;
  for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu) {
    const std::uint32_t base = gpu / per_machine_ * per_machine_;
    flows.push_back(between(gpu, base + target(gpu - base), bytes));
  }
  return flows;
}

std::vector<Flow> Machines::next_inside(double bytes) const {
  return inside([this](std::uint32_t local) { return (local + 1) % per_machine_; }, bytes);
}

const Method kFlatRing{"FR", flat_ring, flat_ring_phases};
const Method kTencent{"TA", tencent, tencent_phases};
const Method kParallel{"PN", parallel_netreduce, netreduce_phases};

} // namespace weir::figures::netreduce
