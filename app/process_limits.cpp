// SPDX-License-Identifier: BSD-3-Clause
#include "process_limits.hpp"

#include "file_limit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <latch>
#include <malloc.h>
#include <stdexcept>
#include <sys/resource.h>
#include <system_error>
#include <thread>
#include <vector>

namespace weir::app {
namespace {

constexpr rlim_t kFiles = 256;       // EAL, the control service and its callers, metrics
constexpr rlim_t kFilesOfPort = 8;   // of a virtual device
constexpr std::size_t kThreads = 32; // EAL's, gRPC's, those that look once a second

void check_files(std::size_t ports) {
  const rlim_t limit = raise_file_limit();
  if (const rlim_t needed = kFiles + kFilesOfPort * ports; limit < needed) {
    throw std::runtime_error(
        fmt::format("found a limit of {} open files; allowed: at least {} for {} "
                    "ports (ulimit -Hn, a service's LimitNOFILE)",
                    limit, needed, ports));
  }
}

/// Makes them all at once: a limit counts the threads of other processes, too.
void check_threads(std::size_t needed) {
  std::latch go(1);
  std::vector<std::jthread> threads;
  try {
    while (threads.size() < needed) {
      threads.emplace_back([&go] { go.wait(); });
    }
  } catch (const std::system_error&) {
    go.count_down();
    throw std::runtime_error(
        fmt::format("found room for {} threads; allowed: at least {} (ulimit "
                    "-u, a container's limit of processes, a service's TasksMax)",
                    threads.size(), needed));
  }
  go.count_down();
}

} // namespace

void bound_heap() {
  constexpr int arenas = 4; // glibc has eight for each CPU
  constexpr int large_bytes = 128 * 1024;
  mallopt(M_ARENA_MAX, arenas);
  mallopt(M_MMAP_THRESHOLD, large_bytes); // which glibc raises if nobody sets it
}

void check_process_limits(const config::Config& config) {
  check_files(config.ports.size() + config.spare.ports);
  check_threads(config.lcores.size() + kThreads);
}

} // namespace weir::app
