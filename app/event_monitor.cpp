// SPDX-License-Identifier: BSD-3-Clause
#include "event_monitor.hpp"

#include "control_events.hpp"
#include "lcore/clock.hpp"

namespace weir::app {
namespace {

events::RefusedSetting steering_of(const control::Port& port, std::string_view driver) {
  const control::SteeringState state = port.steering().value_or(control::SteeringState{});
  return {port.name(), control::kinds_of_trouble(state),
          control::why_not_all(state, port.name(), driver)};
}

std::vector<events::RememberedNeighbours> remembered_by(const ring::RingSet& set,
                                                        const control::Tenants& tenants) {
  std::vector<events::RememberedNeighbours> all{{"", set.pairs() / 2, ring::RingSet::kMostMembers}};
  for (const control::TenantUse& use : tenants.uses(set)) {
    all.push_back({use.tenant.name, use.neighbours, *use.tenant.neighbours});
  }
  return all;
}

} // namespace

void EventMonitor::see(const control::Look& look) {
  admin_.replace_gone();
  write(rings_.look(*look.set, look.rings, lcore::Clock().now().ns));
  look_at_ports();
  look_for_loops();
  write(buffers_.look({inspector_.free_mbufs(), inspector_.all_mbufs()}));
  write(neighbours_.look(remembered_by(*look.set, inspector_.tenants())));
  log_.tell_left_out();
}

/// The watchdog tells of the lcore.
void EventMonitor::miss(const lcore::LcoreError&) {
  log_.tell_left_out();
}

void EventMonitor::look_at_ports() {
  std::vector<events::PortLink> links;
  std::vector<events::RefusedSetting> refused;
  for (const auto& port : inspector_.ports()) {
    if (port) {
      const control::PortInformation information = port->information();
      links.push_back({port->name(), information.link, information.remedy});
      refused.push_back(steering_of(*port, information.driver));
    }
  }
  write(ports_.look(links));
  write(settings_.look(refused));
}

void EventMonitor::look_for_loops() {
  for (const control::LoopNews& news : loops_.look()) {
    log_.write(event_of(news));
  }
}

void EventMonitor::write(const std::vector<events::Event>& news) {
  for (const events::Event& event : news) {
    log_.write(event);
  }
}

} // namespace weir::app
