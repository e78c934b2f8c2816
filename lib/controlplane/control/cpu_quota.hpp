// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <optional>

namespace weir::control {

/// How many CPUs' time the kernel grants this process and all that share its control groups: 1.5 is
/// one CPU and half of another (cgroups(7): cpu.max, or cpu.cfs_quota_us of version 1). The least
/// of its group and those above. Nothing: as much as there is. `process` stands for
/// /proc/self/cgroup, `root` for /sys/fs/cgroup.
std::optional<double> cpu_quota(const std::filesystem::path& process = "/proc/self/cgroup",
                                const std::filesystem::path& root = "/sys/fs/cgroup");

} // namespace weir::control
