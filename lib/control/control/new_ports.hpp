// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/port.hpp"
#include "control/port_plan.hpp"

#include <memory>
#include <vector>

struct rte_mempool;

namespace weir::control {

/// The ports that a reload opens, started, before the switch takes them. Those that it has not
/// taken are closed and detached when this object goes.
class NewPorts {
 public:
  /// Throws PortError; no device is open then.
  NewPorts(const PortPlan& plan, rte_mempool* pool);
  ~NewPorts();
  NewPorts(const NewPorts&) = delete;
  NewPorts& operator=(const NewPorts&) = delete;

  /// The next one that is not taken, in the plan's order.
  std::shared_ptr<Port> next() const { return ports_.back(); }

  /// The switch has the next one now.
  void take_next() { ports_.pop_back(); }

 private:
  void detach_all();

  std::vector<std::shared_ptr<Port>> ports_; // the next one last
};

} // namespace weir::control
