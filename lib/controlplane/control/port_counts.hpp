// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/counters.hpp"
#include "lcore/quiesce.hpp"

#include <cstdint>
#include <vector>

namespace weir::control {

/// What ports have counted since an operator set them to zero. The lcores count on meanwhile.
class PortCounts {
 public:
  /// `lcores` outlives it. The first ports count from the beginning.
  PortCounts(const lcore::LcoreSet& lcores, std::size_t ports) : lcores_(lcores), cleared_(ports) {}

  /// By place.
  frame::PortCounters of(std::uint16_t port) const;
  void clear(std::uint16_t port);
  /// Another port is at this place now.
  void begin(std::uint16_t port, const lcore::Quiesce& quiesced);

 private:
  frame::PortCounters all_of(std::uint16_t port) const;

  const lcore::LcoreSet& lcores_;
  std::vector<frame::PortCounters> cleared_; // by place; under the lcores' lock
};

} // namespace weir::control
