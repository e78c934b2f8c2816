// SPDX-License-Identifier: BSD-3-Clause
#include "control/lcore_choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <cmath>

namespace weir::control {
namespace {

using config::Role;

// Two lcores with two rings or more moved 1.1 times as much as one where a line took 130 ns, and
// as much as one where it took 370 (docs/lab/scaling.md).
constexpr double kFarNs = 300;
constexpr double kQuotaOfTwo = 2; // a worker that spins; control, and threads that are no lcores

const std::vector<Role> kData{Role::rx, Role::worker, Role::tx};

/// Those that may carry packets, the best first: one of each core, none of control's core, on the
/// ports' node.
std::vector<Cpu> data_cpus(std::span<const Cpu> cpus, const Cpu& control, int node) {
  std::vector<Cpu> found;
  for (const Cpu& cpu : cpus) {
    const bool has_sibling = std::ranges::count(found, cpu.core, &Cpu::core) != 0;
    if (cpu.core != control.core && !has_sibling) {
      found.push_back(cpu);
    }
  }
  const bool has_near = std::ranges::count(found, node, &Cpu::node) != 0;
  if (node != kNoNode && has_near) {
    std::erase_if(found, [node](const Cpu& cpu) { return cpu.node != node; });
  }
  if (found.empty()) { // the machine has one core
    found.push_back(cpus.back());
  }
  return found;
}

/// Not on the ports' node, where each CPU may carry packets, if there is another.
const Cpu& control_cpu(std::span<const Cpu> cpus, int node) {
  const auto away = std::ranges::find_if(cpus, [node](const Cpu& cpu) { return cpu.node != node; });
  return node != kNoNode && away != cpus.end() ? *away : cpus.front();
}

std::string things(std::size_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

/// Never more than is granted: 1.99 is not 2.
std::string granted(double quota) {
  return fmt::format("the kernel grants {:.2f} CPUs' time (cpu.max of a control group)",
                     std::floor(100 * quota) / 100);
}

std::size_t most_beside_control(double quota) {
  assert(quota >= kQuotaOfTwo);
  return static_cast<std::size_t>(quota) - 1;
}

/// Chooses the workers one by one, and says why.
class Chooser {
 public:
  Chooser(const LcoreDemand& demand, const RoundTrip& round_trip_ns)
      : demand_(demand), round_trip_ns_(round_trip_ns),
        most_(std::max<std::size_t>(std::min(demand.rings, demand.ports), 1)) {
    if (demand.quota) {
      const std::size_t most = most_beside_control(*demand.quota);
      is_limited_ = most < most_;
      most_ = std::min(most_, most);
    }
  }

  std::vector<Cpu> choose(std::span<const Cpu> candidates) {
    std::vector<Cpu> chosen{candidates.front()};
    for (const Cpu& cpu : candidates.subspan(1)) {
      if (chosen.size() == most_) {
        tell_enough(candidates.size() - chosen.size() - left_out_);
        break;
      }
      const double ns = round_trip_ns_(chosen.front().id, cpu.id);
      if (ns > kFarNs) {
        tell_far(chosen.front(), cpu, ns);
      } else {
        chosen.push_back(cpu);
      }
    }
    return chosen;
  }

  std::vector<std::string> take_reasons() { return std::move(reasons_); }

 private:
  void tell_far(const Cpu& first, const Cpu& cpu, double ns) {
    ++left_out_;
    reasons_.push_back(fmt::format(
        "CPU {} is left out: a cache line takes {:.0f} ns from CPU {} and back, above {:.0f}, so "
        "it would gain less than the frames cost that are handed over to it",
        cpu.id, ns, first.id, kFarNs));
  }

  void tell_enough(std::size_t more) {
    if (is_limited_) {
      reasons_.push_back(fmt::format("{}: room for control and {}", granted(*demand_.quota),
                                     things(most_, "worker")));
      return;
    }
    reasons_.push_back(fmt::format("{} and {} keep {} busy: {} more {} left free",
                                   things(demand_.rings, "ring"), things(demand_.ports, "port"),
                                   things(most_, "worker"), more,
                                   more == 1 ? "core is" : "cores are"));
  }

  const LcoreDemand& demand_;
  const RoundTrip& round_trip_ns_;
  std::size_t most_;
  bool is_limited_ = false; // by the CPU time that the kernel grants
  std::size_t left_out_ = 0;
  std::vector<std::string> reasons_;
};

std::string summary(const Cpu& control, const std::vector<Cpu>& data) {
  std::vector<unsigned> ids;
  std::ranges::transform(data, std::back_inserter(ids), &Cpu::id);
  return fmt::format(
      "control on CPU {}; rx, worker and tx on {}", control.id,
      fmt::format("{} {}", ids.size() == 1 ? "CPU" : "each of CPUs", fmt::join(ids, ", ")));
}

LcoreChoice one_lcore(const Cpu& cpu, std::string why) {
  LcoreChoice choice;
  choice.lcores.push_back({.id = cpu.id,
                           .roles = {Role::control, Role::rx, Role::worker, Role::tx},
                           .idle = config::Idle::sleep});
  choice.reasons = {summary(cpu, {cpu}), std::move(why)};
  return choice;
}

} // namespace

LcoreChoice choose_lcores(std::span<const Cpu> cpus, const LcoreDemand& demand,
                          const RoundTrip& round_trip_ns) {
  assert(!cpus.empty());
  const Cpu& control = control_cpu(cpus, demand.node);
  const std::vector<Cpu> candidates = data_cpus(cpus, control, demand.node);
  if (demand.quota && *demand.quota < kQuotaOfTwo) {
    return one_lcore(candidates.front(),
                     granted(*demand.quota) + ": one lcore, which sleeps while nothing comes");
  }
  Chooser chooser(demand, round_trip_ns);
  const std::vector<Cpu> data = chooser.choose(candidates);
  if (data.front().id == control.id) { // the machine has one CPU
    return one_lcore(control, "there is one CPU, so the lcore sleeps while nothing comes");
  }
  LcoreChoice choice{.lcores = {}, .reasons = {summary(control, data)}};
  choice.lcores.push_back({.id = control.id,
                           .roles = {Role::control},
                           .idle = demand.quota ? config::Idle::sleep : config::Idle::spin});
  for (const Cpu& cpu : data) {
    choice.lcores.push_back({.id = cpu.id, .roles = kData});
  }
  for (std::string& reason : chooser.take_reasons()) {
    choice.reasons.push_back(std::move(reason));
  }
  return choice;
}

} // namespace weir::control
