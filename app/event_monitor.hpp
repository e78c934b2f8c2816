// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/inspector.hpp"
#include "control/loops.hpp"
#include "control/monitor.hpp"
#include "control/port_admin.hpp"
#include "control/region_admin.hpp"
#include "events/event_log.hpp"
#include "events/hello_watch.hpp"
#include "events/resource_watch.hpp"
#include "events/ring_watch.hpp"
#include "events/tree_link_watch.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace weir::app {

/// Writes down what has happened to rings, regions, ports and buffers between two looks. Mends
/// ports whose interfaces or other ends are back, and closes ports that are in a loop.
class EventMonitor : public control::MonitorReader {
 public:
  /// All outlive it.
  EventMonitor(control::PortAdmin& ports, control::RegionAdmin& regions, control::Loops& loops,
               const control::Inspector& inspector, events::EventLog& log)
      : admin_(ports), regions_(regions), loops_(loops), inspector_(inspector), log_(log) {}

  void see(const control::Look& look) override;
  void miss(const lcore::LcoreError& error) override;

 private:
  void look_at_ports(std::span<const events::PortLink> links);
  void look_for_refused_hellos(const ring::RingSet& set, std::span<const events::PortLink> links);
  void look_for_loops();
  void look_at_regions();
  void write(const std::vector<events::Event>& news);

  control::PortAdmin& admin_;
  control::RegionAdmin& regions_;
  control::Loops& loops_;
  const control::Inspector& inspector_;
  events::EventLog& log_;
  events::RingWatch rings_;
  events::PortWatch ports_;
  events::TreeLinkWatch tree_links_;
  events::HelloWatch hellos_;
  std::uint64_t refusals_ = 0; // that hellos_ has seen
  events::SettingWatch settings_;
  events::BufferWatch buffers_;
  events::NeighbourWatch neighbours_;
};

} // namespace weir::app
