// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/stream.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace weir::nccl_check {

struct Options {
  std::string plug_in;                // a file, or what dlopen() finds; empty: what NCCL would take
  int tables = 12;                    // version
  std::uint16_t ranks = 0;            // 0: not said
  std::optional<std::uint16_t> rank;  // none: all are here
  std::optional<host::Endpoint> meet; // none: by loopback
  std::uint32_t repeat = 1;
  std::chrono::seconds wait{60};
};

/// From the command line, and what launchers tell by the environment. Prints and ends for --help.
/// Throws app::UsageError.
Options parse_options(int argc, char** argv);

} // namespace weir::nccl_check
