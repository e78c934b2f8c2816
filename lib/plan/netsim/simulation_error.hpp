// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>

namespace weir::netsim {

/// A run that cannot start, or that stopped before its end. what() has the reason.
class SimulationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

} // namespace weir::netsim
