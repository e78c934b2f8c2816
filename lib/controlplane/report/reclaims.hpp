// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <string_view>

namespace weir::control {
class Switch;
struct Principal;
} // namespace weir::control

namespace weir::report {

/// Drains the ring with this id. `seconds` of silence until it is withdrawn are 1 to
/// control::kLongestQuiet; empty stands for control::kDefaultQuiet. Returns what it took. Throws
/// UnknownName and control::NotAllowed.
std::chrono::seconds drain_ring(control::Switch& weir, std::string_view ring,
                                std::string_view seconds, const control::Principal& principal);

} // namespace weir::report
