// SPDX-License-Identifier: BSD-3-Clause
#include "report/switch_tables.hpp"

#include "config/keys.hpp"
#include "stage/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace weir::report {

std::string owners_in_words(const control::OperatorSeen& seen) {
  std::vector<std::string> words;
  for (const program::OperatorOwner& owner : seen.owners) {
    if (!owner.ring) {
      words.push_back(owner.tenant.empty() ? "all" : owner.tenant);
    } else {
      words.push_back(fmt::format("ring {}{}{}", *owner.ring, owner.tenant.empty() ? "" : " of ",
                                  owner.tenant));
    }
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string_view PortSteeringRow::rx_steering() const {
  return config::kRxSteeringNames[static_cast<std::size_t>(port.config().rx_steering)];
}

std::string_view PortBridgeRow::state() const {
  const bool is_open = bridge == config::YesNo::no || loops.closed_until_ns == 0;
  return is_open ? config::kYesNo[static_cast<std::size_t>(bridge)] : "loop";
}

double PortBridgeRow::closed_s() const {
  constexpr double ns_per_s = 1e9;
  return static_cast<double>(loops.closed_until_ns - std::min(now_ns, loops.closed_until_ns)) /
         ns_per_s;
}

std::string TenantRow::hosts() const {
  return use.tenant.hosts.empty() ? std::string(kNone)
                                  : fmt::format("{}", fmt::join(config::hosts_of(use.tenant), " "));
}

std::string_view name_of(region::State state) {
  switch (state) {
  case region::State::forming:
    return "forming";
  case region::State::open:
    return "open";
  case region::State::ended:
    break;
  }
  return "ended";
}

Cell place_cell(const control::RegionSeen& region) {
  return region.state == region::State::ended ? Cell(std::string(kNone))
                                              : Cell(std::uint64_t{region.place});
}

std::string note_of(const control::RegionSeen& region) {
  switch (region.state) {
  case region::State::forming:
    return "no hello yet from " + control::absent_members(region);
  case region::State::open:
    break;
  case region::State::ended:
    return control::reason_in_words(region);
  }
  return std::string(kNone);
}

std::string_view TraceRow::stage() const {
  return stage::row_of(stage::stage_of(record)).name;
}

std::string TraceRow::event() const {
  return record.event == frame::TraceEvent::dropped
             ? fmt::format("dropped {}", weir::name_of(record.drop))
             : std::string(name_of(record.event));
}

std::string_view TraceRow::rank() const {
  return names_a_slot(record.event) ? std::string_view(place.rank) : kNone;
}

std::string TraceRow::of_slot(std::uint64_t value) const {
  return names_a_slot(record.event) ? std::to_string(value) : std::string(kNone);
}

double busy_percent(const control::LcoreSnapshot& lcore) {
  const auto& rounds = lcore.rounds;
  return rounds.rounds == 0 ? 0.0
                            : 100.0 * static_cast<double>(rounds.rounds - rounds.idle_rounds) /
                                  static_cast<double>(rounds.rounds);
}

std::string utc_text(std::uint64_t time_ns) {
  constexpr std::uint64_t ns_per_s = 1'000'000'000;
  const auto time = static_cast<std::time_t>(time_ns / ns_per_s);
  std::tm parts{};
  gmtime_r(&time, &parts);
  char text[sizeof "2026-01-01T00:00:00Z"];
  return {text, std::strftime(text, sizeof text, "%FT%TZ", &parts)};
}

std::string text_of(const capture::Status& status) {
  switch (status.state) {
  case capture::State::running:
    return "running";
  case capture::State::complete:
    return "ended: has its packets";
  case capture::State::stopped:
    return "ended: stopped";
  case capture::State::failed:
    return "ended: " + status.error;
  }
  return {};
}

} // namespace weir::report
