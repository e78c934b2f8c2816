// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weir::config {

/// A switch of a tree.
struct SwitchConfig {
  std::string name; // by which other switches' files call it
  std::string file; // for errors
  Config config;
};

/// What switches' files say of the same ring against each other, and what they leave open: numbers
/// and members that differ, a parent or a child that is in no file or does not know of it, ranks
/// that a child has otherwise, no root or several, switches that are each other's parents. Without
/// these a job can begin, if the cables are as the files say. By ring, then in the order of the
/// files. `switches` are all that have a part of these rings, each of another name.
std::vector<std::string> disagreements(std::span<const SwitchConfig> switches);

/// A ring on which all agree.
struct AgreedRing {
  std::uint32_t id = 0;
  std::uint16_t world = 0;
  std::string root; // name of the switch
  std::size_t switches = 0;
};

/// By id. The switches agree.
std::vector<AgreedRing> agreed_rings(std::span<const SwitchConfig> switches);

} // namespace weir::config
