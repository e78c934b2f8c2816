// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>

namespace weir::yaml {

/// One error in a file that a person wrote. what() reads "FILE:LINE: KEY: found …; allowed: …".
/// LINE counts from 1. KEY is the path to the value ("rings[0].members[2].ip"), or "(document)" for
/// the whole file.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

} // namespace weir::yaml
