// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace weir::manager {

/// A manager that does not lead, for its pages.
struct Standby {
  std::string fabric;
  std::string manager;
  std::string leader; // empty: none that it knows of
};

} // namespace weir::manager
