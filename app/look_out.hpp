// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/periodic.hpp"
#include "control/switch.hpp"
#include "events/event_log.hpp"
#include "events/resource_watch.hpp"
#include "events/ring_watch.hpp"

namespace weir::app {

/// Looks once a second at rings, ports and buffers, and writes down what has happened. It has a
/// thread of its own: a prompt may keep the main one. A look stops the lcores for a
/// part of the rings at a time.
class LookOut {
 public:
  /// Both outlive it.
  LookOut(control::Switch& weir, events::EventLog& log);

 private:
  void look_again();
  void look();
  void write(const std::vector<events::Event>& news);

  control::Switch& weir_;
  events::EventLog& log_;
  events::RingWatch rings_;
  events::PortWatch ports_;
  events::SettingWatch settings_;
  events::BufferWatch buffers_;
  events::NeighbourWatch neighbours_;
  control::Periodic looks_; // the last one: it uses the others
};

} // namespace weir::app
