// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// How the ranks of a group that is over find out who is left (docs/host.md, "When a rank has
/// died"). The lowest rank that lives leads; the others join it.

#include "host/base/control_note.hpp"
#include "host/base/error.hpp"
#include "host/shrink/group_history.hpp"
#include "host/shrink/shrink_membership.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

namespace weir::host {

struct ShrinkPlan {
  std::vector<std::uint16_t> members; // of the group that is over, by original rank, ascending
  std::chrono::milliseconds timeout{10'000};

  /// "rank 2 and 3", and the first of them: as the caller of the group that is over knows them.
  Error error(ErrorCode code, const std::set<std::uint16_t>& about, std::string_view text) const;

  /// Of the errors of the rank that leads.
  Sender sender(std::uint16_t leader) const;
};

struct Survivors {
  ShrinkMembership membership;
  std::vector<std::unique_ptr<FramedStream>> streams; // by new rank, as of Rendezvous::release()
  std::uint64_t callers_turned_away = 0;              // by the rank that leads
};

/// Waits until every rank of the group has come, or is known to have ended or not to answer. The
/// caller holds the history's turn. Throws Error: a rank that lives did not come within the
/// timeout, too few are left, or another rank's error. Ends within the timeout, and as much again
/// once a rank that leads has admitted this one.
Survivors find_survivors(GroupHistory& history, const ShrinkPlan& plan);

} // namespace weir::host
