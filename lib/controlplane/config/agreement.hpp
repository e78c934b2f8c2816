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
  std::string text; // of the file, in which errors find their lines
};

/// What files say otherwise than each other.
struct Disagreement {
  std::string text;               // with the places in all files that it is about
  std::vector<std::string> files; // these, each once
};

/// What switches' files say of the same ring against each other, and what they leave open: numbers
/// and members that differ, a parent or a child that is in no file or does not know of it, ranks
/// that a child has otherwise, no root or several, switches that are each other's parents. Without
/// these a job can begin, if the cables are as the files say. By ring, then in the order of the
/// files. `switches` are all that have a part of these rings, each of another name.
std::vector<Disagreement> disagreements(std::span<const SwitchConfig> switches);

/// The names of the other switches that a ring's part names: its parent and its children.
std::vector<std::string> switches_around(const ring::RingSpec& ring);

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
