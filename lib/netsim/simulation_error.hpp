// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>

namespace weir::netsim {

/// A run that cannot be made, or that came to a stop before its end; what() says why.
class SimulationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

} // namespace weir::netsim
