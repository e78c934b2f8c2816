// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>

namespace weir::rpc {

/// There is no room for one more just now. what() says how many there are.
class TooMany : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

} // namespace weir::rpc
