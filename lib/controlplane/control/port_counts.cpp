// SPDX-License-Identifier: BSD-3-Clause
#include "control/port_counts.hpp"

#include <algorithm>
#include <cassert>

namespace weir::control {

frame::PortCounters PortCounts::all_of(std::uint16_t port) const {
  frame::PortCounters sum;
  for (const auto& lcore : lcores_) {
    sum += lcore->port_counters(port);
  }
  return sum;
}

frame::PortCounters PortCounts::of(std::uint16_t port) const {
  const auto lock = lcores_.keep_going();
  assert(port < cleared_.size());
  frame::PortCounters counters = all_of(port);
  counters -= cleared_[port];
  return counters;
}

void PortCounts::clear(std::uint16_t port) {
  const auto lock = lcores_.keep_going();
  assert(port < cleared_.size());
  cleared_[port] = all_of(port);
}

void PortCounts::begin(std::uint16_t port, const lcore::Quiesce&) {
  cleared_.resize(std::max<std::size_t>(cleared_.size(), port + 1U));
  cleared_[port] = all_of(port);
}

} // namespace weir::control
