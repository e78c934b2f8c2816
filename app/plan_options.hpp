// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// weir-plan's command line.

#include "plan/algorithms.hpp"
#include "plan/switch_files.hpp"
#include "plan_compare.hpp"
#include "usage_error.hpp"
#include "wire/address.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace weir::app {

enum class PlanCommand : std::uint8_t { make, fabric, draw, compare };

/// What becomes of a file that is there and differs from what would be written.
enum class DifferingFiles : std::uint8_t { kept, replaced };

struct PlanOptions {
  PlanCommand command = PlanCommand::make;
  std::string topology; // a file
  plan::Algorithm algorithm = plan::Algorithm::multitree;
  std::vector<std::string> nodes; // participants; none: all
  std::uint32_t rings = 64;       // most rings
  std::string tree;               // draw: the tree of this node
  std::uint32_t ring = 0;         // draw: this ring, from 1
  std::string configs;            // fabric: the folder of the switches' configurations; empty: none
  DifferingFiles differing_files = DifferingFiles::kept;
  wire::IpAddress first_address;     // fabric: of the first node
  plan::SwitchFileSettings switches; // fabric, without addresses
  RingNumbers ring_numbers;          // fabric, compare
  std::string out;                   // a file; empty: standard output
  std::string plot;                  // compare: an SVG file; empty: none
  std::uint64_t least_bytes = 0;     // compare: sizes from least to most, by doubling
  std::uint64_t most_bytes = 0;
  OwnCosts costs; // compare
};

/// Throws UsageError. `--help` and `--version` print and exit.
PlanOptions parse_plan_options(int argc, char** argv);

} // namespace weir::app
