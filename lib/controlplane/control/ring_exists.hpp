// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>

namespace weir::control {

/// A ring is to be added whose id another one has. what() names both.
class RingExists : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

} // namespace weir::control
