// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <sys/resource.h>

namespace weir::lcore {

/// How often the calling thread has lost or given up its CPU, by the kernel's count (getrusage(2)).
/// A system call.
inline std::uint64_t context_switches() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<std::uint64_t>(usage.ru_nvcsw) + static_cast<std::uint64_t>(usage.ru_nivcsw);
}

} // namespace weir::lcore
