// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>

namespace weir::app {

/// A result that is not what the ranks' tensors make it.
class WrongResult : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

} // namespace weir::app
