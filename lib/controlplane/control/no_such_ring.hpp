// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>

namespace weir::control {

/// No ring has this id. what() has the id and those that there are.
class NoSuchRing : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

} // namespace weir::control
