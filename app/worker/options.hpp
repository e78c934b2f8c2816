// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/group_options.hpp"
#include "worker/single_job.hpp"
#include "worker/sweep.hpp"

#include <cstdint>
#include <string>
#include <variant>

namespace weir::app {

struct WorkerOptions {
  host::GroupOptions group;      // its device: a network interface; empty for DPDK
  std::string devargs;           // a DPDK device; empty: none
  std::string json;              // a file; empty: none
  std::uint16_t local_ranks = 1; // from the group's rank on
  Registration registration = Registration::tensors;
  std::variant<JobOptions, SweepOptions> work;
};

/// Throws UsageError. `--help` and `--version` print and exit.
WorkerOptions parse_worker_options(int argc, char** argv);

} // namespace weir::app
