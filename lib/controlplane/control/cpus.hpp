// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/placement.hpp"

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace weir::control {

/// A logical CPU.
struct Cpu {
  unsigned id = 0;
  unsigned core = 0;  // the lowest CPU of its core: hardware threads of one core have one
  int node = kNoNode; // NUMA

  bool operator==(const Cpu&) const = default;
};

/// Whether this process may use it or not. Nothing: this machine has none of this number, or no
/// sysfs. `root` stands for /sys/devices/system.
std::optional<Cpu> cpu_of(unsigned id, const std::filesystem::path& root = "/sys/devices/system");

/// Those that it may use, in the order of their numbers. Empty if there is no sysfs. `root` stands
/// for /sys/devices/system.
std::vector<Cpu> cpus_of_this_process(const std::filesystem::path& root = "/sys/devices/system");

/// The CPUs of "0-3,8", as the kernel lists them. Throws std::invalid_argument.
std::vector<unsigned> cpus_in_list(std::string_view list);

/// Nanoseconds in which a cache line goes from one CPU to the other and back, the shortest of some
/// tries: as each frame does that one lcore hands to another. Takes 2 ms, on threads of its own.
double line_round_trip_ns(unsigned one, unsigned other);

} // namespace weir::control
