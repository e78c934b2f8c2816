// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/api/group_driver.hpp"
#include "host/api/group_opening.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace weir::host {

/// A group of those that are left of another one.
struct Succession {
  std::shared_ptr<GroupDriver> driver;
  std::vector<std::uint16_t> parent_ranks; // by rank, its rank in the other group
};

/// Ends the group's calls, finds out who lives, and forms a group of them. Group::shrink says what
/// becomes of the options, and what it throws.
Succession succeed(GroupDriver& over, GroupOptions options, const TransportOpening& open);

} // namespace weir::host
