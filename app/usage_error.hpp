// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>

namespace weir::app {

/// What is wrong with the command line, or with a file that it names. A configuration's own
/// mistakes are control::ConfigError, which knows the line.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

} // namespace weir::app
