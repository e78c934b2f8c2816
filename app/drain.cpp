// SPDX-License-Identifier: BSD-3-Clause
#include "drain.hpp"

#include "control/unfinished_rings.hpp"
#include "control_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace weir::app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenChecks{10};
constexpr std::chrono::seconds kTimeToStop{10}; // after the drain, as generous as the unit is

/// What a stop would cut off.
struct UnderWay {
  std::vector<control::TendedRing> rings;   // with a collective
  std::vector<control::RegionSeen> regions; // which hold packets

  bool is_empty() const { return rings.empty() && regions.empty(); }

  /// "collectives of ring 7, 9; packets of region 1".
  std::string in_words() const {
    std::vector<std::string> parts;
    if (!rings.empty()) {
      parts.push_back("collectives of ring " + control::ids_of(rings));
    }
    if (!regions.empty()) {
      std::vector<std::uint32_t> ids;
      std::ranges::transform(regions, std::back_inserter(ids),
                             [](const control::RegionSeen& region) { return region.spec.id; });
      parts.push_back(fmt::format("packets of region {}", fmt::join(ids, ", ")));
    }
    return fmt::format("{}", fmt::join(parts, "; "));
  }
};

UnderWay under_way(const control::RegionAdmin& regions, const control::Inspector& inspector) {
  UnderWay under_way{control::busy_of(inspector.tended_rings().rings), regions.regions({})};
  std::erase_if(under_way.regions, [](const control::RegionSeen& region) {
    return region.state != region::State::open || region.held == 0;
  });
  return under_way;
}

void tell_wait(const UnderWay& busy, std::chrono::seconds limit, ServiceManager& service,
               events::EventLog& log) {
  service.ask_for_time_to_stop(limit + kTimeToStop);
  service.tell_status(fmt::format("drains: {} are under way", busy.in_words()));
  log.write({events::EventKind::stop_waits,
             fmt::format("drains: waits at most {} s for {}; a second signal stops at once",
                         limit.count(), busy.in_words()),
             {}});
}

} // namespace

void drain(control::RingAdmin& rings, control::RegionAdmin& regions,
           const control::Inspector& inspector, const std::atomic<bool>& at_once,
           ServiceManager& service, events::EventLog& log) {
  rings.drain_all();
  regions.drain_all();
  const std::chrono::seconds limit(inspector.config()->drain_s);
  const auto deadline = Clock::now() + limit;
  UnderWay busy = under_way(regions, inspector);
  if (!busy.is_empty() && limit.count() != 0) {
    tell_wait(busy, limit, service, log);
  }
  while (!busy.is_empty() && !at_once && Clock::now() < deadline) {
    std::this_thread::sleep_for(kBetweenChecks);
    busy = under_way(regions, inspector);
  }
  for (const control::TendedRing& ring : busy.rings) {
    log.write(cut_off_event(ring));
  }
  for (const control::RegionSeen& region : busy.regions) {
    log.write(cut_off_event(region));
  }
}

} // namespace weir::app
