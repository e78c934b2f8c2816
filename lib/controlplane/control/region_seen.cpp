// SPDX-License-Identifier: BSD-3-Clause
#include "control/region_seen.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir::control {

using region::End;

namespace {

double seconds(std::uint64_t ms) {
  return static_cast<double>(ms) / 1000.0;
}

} // namespace

std::string member_in_words(const region::RegionSpec& spec, std::size_t member) {
  return fmt::format("member {} ({})", member, wire::to_string(spec.members[member].ip));
}

std::size_t RegionSeen::heard() const {
  return static_cast<std::size_t>(std::ranges::count(members, true, &Member::has_said_hello));
}

std::string RegionSeen::views() const {
  std::vector<std::string> names;
  for (const region::RegionView& view : spec.views) {
    names.push_back(
        fmt::format("{} of {}", weir::name_of(view.operation), weir::name_of(view.type)));
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

std::string_view name_of(End why) {
  switch (why) {
  case End::withdrawn:
    return "withdrawn";
  case End::superseded:
    return "superseded";
  case End::silent:
    return "silent";
  case End::refused:
    return "refused";
  case End::broken:
    return "broken";
  case End::unformed:
    break;
  }
  return "unformed";
}

std::string_view text_of(End why) {
  switch (why) {
  case End::withdrawn:
    return "it was withdrawn, or the call that held it has ended";
  case End::superseded:
    return "a queue pair of its members has said hello to a newer region";
  case End::silent:
    return "a member owed an acknowledgement and was silent for the region's patience";
  case End::refused:
    return "a member has answered by a fatal NAK: its queue pair has failed, or its memory is gone";
  case End::broken:
    return "a member has sent what no region takes";
  case End::unformed:
    break;
  }
  return "a member has not said hello in time";
}

std::string absent_members(const RegionSeen& region) {
  std::vector<std::string> names;
  for (std::size_t member = 0; member < region.members.size(); ++member) {
    if (!region.members[member].has_said_hello) {
      names.push_back(member_in_words(region.spec, member));
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string cut_off_sentence(const RegionSeen& region) {
  std::vector<std::string> owing;
  for (std::size_t member = 0; member < region.members.size(); ++member) {
    if (region.members[member].unacknowledged != 0) {
      owing.push_back(member_in_words(region.spec, member));
    }
  }
  return fmt::format("region {}: cut off: it held {} packets for {}", region.spec.id, region.held,
                     fmt::join(owing, ", "));
}

std::string reason_in_words(const RegionSeen& ended) {
  const std::string who =
      ended.culprit ? member_in_words(ended.spec, *ended.culprit) : std::string("a member");
  switch (ended.why_ended.value_or(End::withdrawn)) {
  case End::withdrawn:
    break;
  case End::superseded:
    return "a queue pair of its members has said hello to a newer region";
  case End::silent:
    return fmt::format("{} owes an acknowledgement and was silent for {} s", who,
                       seconds(ended.spec.patience_ms));
  case End::refused:
    return fmt::format("{} has answered by a fatal NAK: its queue pair or its memory is gone", who);
  case End::broken:
    return fmt::format("{} has sent what no region takes: `show drops` has region_key or "
                       "region_request",
                       who);
  case End::unformed:
    return fmt::format("no hello for {} s from {}", seconds(ended.spec.forming_ms),
                       absent_members(ended));
  }
  return "it was withdrawn";
}

} // namespace weir::control
