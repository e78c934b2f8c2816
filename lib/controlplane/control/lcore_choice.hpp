// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// `lcores: auto`: which CPUs a switch takes, and for what. No CPU is looked at: the caller knows
/// them.

#include "config/config.hpp"
#include "control/cpus.hpp"
#include "control/placement.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::control {

/// What there is to do.
struct LcoreDemand {
  std::size_t rings = 0; // those that may come at run time among them
  std::size_t ports = 1;
  int node = kNoNode;          // of most ports
  std::optional<double> quota; // CPUs' time that the kernel grants, if it is limited
};

struct LcoreChoice {
  std::vector<config::LcoreConfig> lcores;
  std::vector<std::string> reasons; // sentences for a log, without their full stops
};

/// Nanoseconds in which a cache line goes to the other CPU and back.
using RoundTrip = std::function<double(unsigned, unsigned)>;

/// Control has a CPU of its own if there are two. Each other lcore is rx, worker and tx in one: a
/// split hands over every frame. There are never more of them than rings, since a second worker of
/// one ring makes the switch slower (docs/performance.md, "Several lcores"), nor than ports; and
/// none is so far from the first that a hand-over costs what it gains. Of each core one CPU is
/// taken, on the ports' NUMA node if any is there. Those that spin leave
/// some of the CPU time that the kernel grants to other threads, or it would stop all of them for a
/// part of each period. `cpus` may not be empty.
LcoreChoice choose_lcores(std::span<const Cpu> cpus, const LcoreDemand& demand,
                          const RoundTrip& round_trip_ns);

} // namespace weir::control
