// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Topologies as YAML files (docs/planner.md, "The topology"): a generator, or nodes, switches and
/// links by name.

#include "plan/topology.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace weir::plan {

/// Errors: yaml::Error, "FILE:LINE: KEY: found …; allowed: …", for a file that cannot be
/// read; invalid YAML; unknown, missing or mistyped keys; names used twice or unknown; rates of 0;
/// values out of range; a topology that is not connected.
Topology load_topology(const std::filesystem::path& file);

/// The same for text in memory. `name` stands for the file in errors.
Topology parse_topology(std::string_view yaml, std::string_view name);

} // namespace weir::plan
