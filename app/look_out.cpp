// SPDX-License-Identifier: BSD-3-Clause
#include "look_out.hpp"

#include "lcore/clock.hpp"

#include <chrono>

namespace weir::app {
namespace {

constexpr std::chrono::seconds kBetweenLooks{1};

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

LookOut::LookOut(control::Switch& weir, events::EventLog& log)
    : weir_(weir), log_(log), looks_(kBetweenLooks, [this] { look_again(); }) {}

void LookOut::look_again() {
  try {
    look();
  } catch (const lcore::LcoreError&) { // the watchdog tells of it
  }
  log_.tell_left_out();
}

void LookOut::look() {
  weir_.ports().replace_gone();
  const control::RingsSeen seen = weir_.inspector().rings_in_parts();
  write(rings_.look(*seen.set, seen.rings, lcore::Clock().now().ns));
  std::vector<events::PortLink> links;
  std::vector<events::RefusedSetting> refused;
  for (const auto& port : weir_.inspector().ports()) {
    if (port) {
      const control::PortInformation information = port->information();
      links.push_back({port->name(), information.link, information.remedy});
      refused.push_back(steering_of(*port, information.driver));
    }
  }
  write(ports_.look(links));
  write(settings_.look(refused));
  write(buffers_.look({weir_.inspector().free_mbufs(), weir_.inspector().all_mbufs()}));
  write(neighbours_.look(remembered_by(*seen.set, weir_.inspector().tenants())));
}

void LookOut::write(const std::vector<events::Event>& news) {
  for (const events::Event& event : news) {
    log_.write(event);
  }
}

} // namespace weir::app
