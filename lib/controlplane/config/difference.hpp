// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What has changed from one configuration to another, and what comes of it in a switch that runs
/// with the first one.

#include "config/config.hpp"
#include "config/effect.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::config {

struct Change {
  /// As in the file, but entries of lists are named as people name them: "ports[p0].mtu",
  /// "lcores[1].roles", "rings[7].window"; members by rank.
  std::string place;
  std::string from; // "-": there was nothing
  std::string to;
  Effect effect = Effect::in_place;
  std::optional<std::uint32_t> ring = {}; // the id, if it is a ring's
};

/// In the order of the table of keys. Ports are the same if their names are, lcores and rings if
/// their ids are. The order of entries does not count, except that of a ring's members.
std::vector<Change> difference(const Config& from, const Config& to);

/// `running` with everything of `wanted` that can change in place; not the rings.
Config changed_in_place(Config running, const Config& wanted);

} // namespace weir::config
