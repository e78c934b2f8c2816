// SPDX-License-Identifier: BSD-3-Clause
#include "look_out.hpp"

#include "lcore/clock.hpp"

#include <chrono>

namespace weir::app {
namespace {

constexpr std::chrono::seconds kBetweenLooks{1};

} // namespace

LookOut::LookOut(control::Switch& weir, events::EventLog& log)
    : weir_(weir), log_(log), looks_(kBetweenLooks, [this] { look_again(); }) {}

void LookOut::look_again() {
  try {
    look();
  } catch (const control::LcoreError&) { // the watchdog tells of it
  }
  log_.tell_left_out();
}

void LookOut::look() {
  const control::RingsSeen seen = weir_.ring_snapshots_in_parts();
  write(rings_.look(*seen.set, seen.rings, lcore::Clock().now().ns));
  std::vector<events::PortLink> links;
  for (const auto& port : weir_.ports()) {
    if (port) {
      links.push_back({port->name(), port->information().link});
    }
  }
  write(ports_.look(links));
  write(buffers_.look({weir_.free_mbufs(), weir_.all_mbufs()}));
}

void LookOut::write(const std::vector<events::Event>& news) {
  for (const events::Event& event : news) {
    log_.write(event);
  }
}

} // namespace weir::app
