// SPDX-License-Identifier: BSD-3-Clause
#include "event_monitor.hpp"

#include "control_events.hpp"
#include "lcore/clock.hpp"

#include <utility>

namespace weir::app {
namespace {

events::RefusedSetting steering_of(const control::Port& port) {
  const control::SteeringState state = port.steering().value_or(control::SteeringState{});
  return {port.name(), control::kinds_of_trouble(state),
          control::why_not_all(state, port.name(), port.information().driver)};
}

/// By the ports' places; where there is none, without a name.
std::vector<events::PortLink>
links_of(const std::vector<std::shared_ptr<const control::Port>>& ports) {
  std::vector<events::PortLink> links(ports.size());
  for (std::size_t place = 0; place < ports.size(); ++place) {
    if (ports[place]) {
      const control::PortInformation information = ports[place]->information();
      links[place] = {ports[place]->name(), information.link, information.remedy};
    }
  }
  return links;
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
  admin_.mend();
  const std::vector<events::PortLink> links = links_of(inspector_.ports());
  write(rings_.look(*look.set, look.rings, links, lcore::Clock().now().ns));
  look_at_ports(links);
  write(tree_links_.look(*look.set, links));
  look_for_refused_hellos(*look.set, links);
  look_for_loops();
  look_at_regions();
  write(buffers_.look({inspector_.free_mbufs(), inspector_.all_mbufs()}));
  write(neighbours_.look(remembered_by(*look.set, inspector_.tenants())));
  log_.tell_left_out();
}

/// The watchdog tells of the lcore.
void EventMonitor::miss(const lcore::LcoreError&) {
  log_.tell_left_out();
}

void EventMonitor::look_at_ports(std::span<const events::PortLink> links) {
  write(ports_.look(links));
  std::vector<events::RefusedSetting> refused;
  for (const auto& port : inspector_.ports()) {
    if (port) {
      refused.push_back(steering_of(*port));
    }
  }
  write(settings_.look(refused));
}

/// Stops the lcores only for news.
void EventMonitor::look_for_refused_hellos(const ring::RingSet& set,
                                           std::span<const events::PortLink> links) {
  const std::uint64_t refusals = inspector_.refusals();
  if (std::exchange(refusals_, refusals) != refusals) {
    write(hellos_.look(set, inspector_.refused_hellos(), links));
  }
}

void EventMonitor::look_for_loops() {
  for (const control::LoopNews& news : loops_.look()) {
    log_.write(event_of(news));
  }
}

void EventMonitor::look_at_regions() {
  for (const control::RegionNews& news : regions_.take_news()) {
    log_.write(event_of(news));
  }
}

void EventMonitor::write(const std::vector<events::Event>& news) {
  for (const events::Event& event : news) {
    log_.write(event);
  }
}

} // namespace weir::app
