// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/api/membership.hpp"
#include "host/rendezvous/rendezvous.hpp"
#include "host/shrink/group_history.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace weir::host {

/// Meets the other ranks, connects to the neighbours and says hello to the switch. Reduces round
/// the ring if no switch aggregates and the options allow it. Throws Error, also when the order to
/// stop is given; null: none comes.
Membership form_group(const GroupOptions& options, std::unique_ptr<Transport> transport,
                      MeetingPlace place = {}, const StopOrder* stop = nullptr);

/// Ranks of a group that is over, which have found one another.
struct Successors {
  std::shared_ptr<GroupHistory> history;
  std::vector<std::uint16_t> members; // original ranks, by new rank
  Rendezvous rendezvous;
  std::uint64_t callers_turned_away = 0;
  std::optional<std::uint32_t> taken_ring = std::nullopt; // another job has begun there
};

/// The same for them. The options' epoch must be 0 or later than that of their groups before.
Membership form_group(const GroupOptions& options, std::unique_ptr<Transport> transport,
                      Successors successors);

/// How these options' rank meets the others.
RendezvousPlan rendezvous_plan(const GroupOptions& options);

} // namespace weir::host
