// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/bootstrap/group_options.hpp"
#include "worker/single_job.hpp"

#include <cstdint>
#include <string>

namespace weir::app {

struct WorkerOptions {
  host::GroupOptions group;                      // its device: a network interface; empty for DPDK
  std::string devargs;                           // a DPDK device; empty: none
  JobOptions job;                                // its count follows from `bytes`
  std::uint64_t bytes = std::uint64_t{64} << 20; // of the call's longer buffer
  std::string json;                              // a file; empty: none
};

/// Throws UsageError. `--help` and `--version` print and exit.
WorkerOptions parse_worker_options(int argc, char** argv);

} // namespace weir::app
