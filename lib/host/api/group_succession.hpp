// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/api/group_driver.hpp"
#include "host/api/group_opening.hpp"
#include "host/base/error.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace weir::host {

/// A group of ranks of another one.
struct Succession {
  std::shared_ptr<GroupDriver> driver;
  std::vector<std::uint16_t> parent_ranks; // by rank, its rank in the other group
};

/// The caller knows the ranks by their old numbers; the new group's are of no use without it.
/// `what` makes the new group.
template <typename Body>
auto with_parent_ranks(std::string_view what, const std::vector<std::uint16_t>& parent_ranks,
                       Body&& body) {
  try {
    return body();
  } catch (const Error& error) {
    if (!error.rank() || *error.rank() >= parent_ranks.size()) {
      throw;
    }
    const std::uint16_t parent = parent_ranks[*error.rank()];
    throw Error(error.code(), parent,
                fmt::format("{}: {} (rank {} of the new group is rank {} of the old one)", what,
                            static_cast<const char*>(error.what()), *error.rank(), parent));
  }
}

/// Opens the new group's device, and tells its other ranks when it cannot: they wait for this one.
std::unique_ptr<Transport> open_or_abandon(const GroupOptions& options,
                                           const TransportOpening& open, Rendezvous& rendezvous);

/// Ends the group's calls, finds out who lives, and forms a group of them. Group::shrink says what
/// becomes of the options, and what it throws.
Succession succeed(GroupDriver& over, GroupOptions options, const TransportOpening& open);

} // namespace weir::host
