// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/switch.hpp"

namespace weir::load {

/// Asks each question many times and prints for how long lcores stood still for it: apart those
/// stops in which every thread concerned kept its CPU, which tell what a stop costs, and those in
/// which one lost it, which tell what the scheduler does. For people; nothing is judged.
void print_stops(control::Switch& weir);

} // namespace weir::load
