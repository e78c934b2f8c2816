// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/switch.hpp"

#include <string>

namespace weir::load {

/// Room for the rings of let_rings_come_and_go(), as lines of the switch's configuration.
std::string room_for_coming_rings();

/// What became of rings that were made and withdrawn.
struct ComingRings {
  unsigned made = 0;
  unsigned most_stops = 0; // of all lcores, to make one
  bool are_gone = false;   // rings, and the memory that EAL gave them
};

/// What reloads of the configuration have done.
struct Reloads {
  unsigned reloads = 0;
  std::uint64_t stops = 0;        // of all lcores
  std::uint64_t stops_needed = 0; // as docs/operating.md has them
  bool are_as_before = false;     // rings, and the memory that EAL gave them
};

/// Has the configuration file name rings of mixed sizes, change them and name them no more, and the
/// switch read it each time.
Reloads reload_again_and_again(control::Switch& weir);

/// Makes rings of mixed sizes, and withdraws or reclaims them in random order, several times.
ComingRings let_rings_come_and_go(control::Switch& weir);

} // namespace weir::load
