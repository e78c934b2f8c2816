// SPDX-License-Identifier: BSD-3-Clause
#include "drain.hpp"

#include "control/unfinished_rings.hpp"
#include "control_events.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <vector>

namespace weir::app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenChecks{10};
constexpr std::chrono::seconds kTimeToStop{10}; // after the drain, as generous as the unit is

void tell_wait(const std::vector<control::TendedRing>& busy, std::chrono::seconds limit,
               ServiceManager& service, events::EventLog& log) {
  const std::string rings = control::ids_of(busy);
  service.ask_for_time_to_stop(limit + kTimeToStop);
  service.tell_status(fmt::format("drains: collectives of ring {} are under way", rings));
  log.write({events::EventKind::stop_waits,
             fmt::format("drains: waits at most {} s for collectives of ring {}; a second signal "
                         "stops at once",
                         limit.count(), rings),
             {}});
}

} // namespace

void drain(control::RingAdmin& rings, const control::Inspector& inspector,
           const std::atomic<bool>& at_once, ServiceManager& service, events::EventLog& log) {
  rings.drain_all();
  const std::chrono::seconds limit(inspector.config()->drain_s);
  const auto deadline = Clock::now() + limit;
  auto busy = control::busy_of(inspector.tended_rings().rings);
  if (!busy.empty() && limit.count() != 0) {
    tell_wait(busy, limit, service, log);
  }
  while (!busy.empty() && !at_once && Clock::now() < deadline) {
    std::this_thread::sleep_for(kBetweenChecks);
    busy = control::busy_of(inspector.tended_rings().rings);
  }
  for (const control::TendedRing& ring : busy) {
    log.write(cut_off_event(ring));
  }
}

} // namespace weir::app
