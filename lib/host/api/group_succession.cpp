// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/group_succession.hpp"

#include "host/api/group_formation.hpp"
#include "host/shrink/survivors.hpp"
#include "host/transport/lone_transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

namespace weir::host {
namespace {

std::uint16_t place_of(std::uint16_t original_rank, const std::vector<std::uint16_t>& members) {
  const auto place = std::ranges::lower_bound(members, original_rank);
  return static_cast<std::uint16_t>(place - members.begin());
}

/// What the history has agreed on for good.
void keep_meeting_options(GroupOptions& options, const GroupOptions& over) {
  options.rank = over.rank;
  options.world = over.world;
  options.rendezvous = over.rendezvous;
  options.job = over.job;
  options.secret = over.secret;
  options.all_gather = over.all_gather;
  options.listener.reset();
  options.handle.clear();
  options.keep_alive = over.keep_alive;
}

void throw_if_defective(const GroupOptions& options) {
  if (const std::string defect = find_defect(options); !defect.empty()) {
    throw std::invalid_argument(defect);
  }
}

} // namespace

std::unique_ptr<Transport> open_or_abandon(const GroupOptions& options,
                                           const TransportOpening& open, Rendezvous& rendezvous) {
  try {
    return options.world == 1 ? make_lone_transport() : open(options);
  } catch (const Error& error) {
    rendezvous.abandon(error);
  } catch (const std::exception& error) {
    rendezvous.abandon(Error(ErrorCode::transport_failure, options.rank,
                             fmt::format("rank {}: {}", options.rank, error.what())));
  }
}

Succession succeed(GroupDriver& over, GroupOptions options, const TransportOpening& open) {
  keep_meeting_options(options, over.options());
  throw_if_defective(options);
  GroupHistory& history = *over.history();
  const std::unique_lock turn(history.turn, std::try_to_lock);
  if (!turn || over.is_succeeded()) {
    throw std::invalid_argument(turn ? "shrink: this group was shrunk already; shrink the new one"
                                     : "shrink: another thread shrinks this group, or one that "
                                       "was shrunk to it or from it");
  }
  over.abort();
  over.release_rings();
  Survivors survivors = find_survivors(history, {over.members(), options.form_timeout});
  const std::vector<std::uint16_t>& members = survivors.membership.members;
  options.rank = place_of(history.self.rank, members);
  options.world = static_cast<std::uint16_t>(members.size());
  Rendezvous rendezvous(rendezvous_plan(options), std::move(survivors.streams));
  std::unique_ptr<Transport> transport = open_or_abandon(options, open, rendezvous);
  Succession next;
  for (const std::uint16_t member : members) {
    next.parent_ranks.push_back(place_of(member, over.members()));
  }
  Membership membership = with_parent_ranks("shrink", next.parent_ranks, [&] {
    return form_group(options, std::move(transport),
                      {over.history(), members, std::move(rendezvous),
                       survivors.callers_turned_away, over.taken_ring()});
  });
  next.driver = std::make_shared<GroupDriver>(options, std::move(membership));
  history.left_out = std::move(survivors.membership.left_out);
  over.note_succeeded();
  return next;
}

} // namespace weir::host
