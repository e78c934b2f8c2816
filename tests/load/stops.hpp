// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/switch.hpp"

namespace weir::load {

/// Asks each question many times and prints how long the lcores stopped for it. It separates the
/// stops in which every thread kept its CPU, which show the cost of a stop, from the others, which
/// show the scheduler. Nothing is checked.
void print_stops(control::Switch& weir);

} // namespace weir::load
