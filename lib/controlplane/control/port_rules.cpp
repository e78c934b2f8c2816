// SPDX-License-Identifier: BSD-3-Clause
#include "control/port_rules.hpp"

#include "control/steering.hpp"

#include <new>

namespace weir::control {
namespace {

bool is_steered(const std::shared_ptr<Port>& port) {
  return port && port->config().rx_steering == config::RxSteering::flow;
}

/// Gives each steered port what it should have for these rings.
void steer(const Ports& ports, const ring::RingSet& rings, const Placement& placement,
           void (Port::*give)(const SteeringPlan&)) {
  for (std::uint16_t place = 0; place < ports.size(); ++place) {
    if (const std::shared_ptr<Port>& port = ports[place]; is_steered(port)) {
      ((*port).*give)(plan_steering(rings, placement, place));
    }
  }
}

} // namespace

void install_rules(const Ports& ports, const ring::RingSet& rings, const Placement& placement) {
  steer(ports, rings, placement, &Port::install_rules);
}

RuleSweep::~RuleSweep() {
  try {
    steer(chassis_.ports.read(lock_), chassis_.rings.read(lock_), chassis_.placement.read(lock_),
          &Port::keep_only_rules);
  } catch (const std::bad_alloc&) { // the next one removes them
  }
}

} // namespace weir::control
