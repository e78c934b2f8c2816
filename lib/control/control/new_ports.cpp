// SPDX-License-Identifier: BSD-3-Clause
#include "control/new_ports.hpp"

namespace weir::control {

NewPorts::NewPorts(const PortPlan& plan, rte_mempool* pool) {
  try {
    for (auto place = plan.opened.rbegin(); place != plan.opened.rend(); ++place) {
      ports_.push_back(std::make_shared<Port>(plan.places[*place]));
      ports_.back()->start(pool);
    }
  } catch (const PortError&) {
    detach_all();
    throw;
  }
}

NewPorts::~NewPorts() {
  detach_all();
}

void NewPorts::detach_all() {
  for (const auto& port : ports_) {
    try {
      port->detach();
    } catch (const PortError&) { // it is closed: the next try says what is wrong with the device
    }
  }
  ports_.clear();
}

} // namespace weir::control
