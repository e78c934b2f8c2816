// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>

namespace weir::app {

/// An error in the command line, or in a file that it names. Errors in a configuration are
/// config::ConfigError, which has the line.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

} // namespace weir::app
