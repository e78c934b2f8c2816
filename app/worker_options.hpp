// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/api/group.hpp"
#include "usage_error.hpp"
#include "worker_buffers.hpp"

#include <cstdint>
#include <string>

namespace weir::app {

enum class Verification : std::uint8_t { every_element, none };
enum class Progress : std::uint8_t { quiet, lines };

struct WorkerOptions {
  host::GroupOptions group;                      // its device: a network interface; empty for DPDK
  std::string devargs;                           // a DPDK device; empty: none
  host::Call call;                               // its count follows from `bytes`
  std::uint64_t bytes = std::uint64_t{64} << 20; // of the call's longer buffer
  std::uint32_t repetitions = 1;
  Placement placement = Placement::in_place;
  Verification verification = Verification::every_element;
  Progress progress = Progress::quiet;
  std::string json; // a file; empty: none
};

/// Throws UsageError. `--help` and `--version` print and exit.
WorkerOptions parse_worker_options(int argc, char** argv);

} // namespace weir::app
