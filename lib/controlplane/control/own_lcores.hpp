// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"

#include <string>
#include <vector>

namespace weir::control {

/// Where the file leaves it to the switch (`lcores: auto`), looks at this machine's CPUs, and gives
/// the configuration the lcores that suit them; where they cannot be seen, the usual two. Returns
/// what was chosen and why, or what lcores of the file lose: a line each. Measures for 2 ms by each
/// CPU that is in question; none is if there is one ring.
std::vector<std::string> take_lcores(config::Config& config);

/// A line if all frames go from one lcore to another, which is slower than one lcore alone.
std::vector<std::string> losing_roles(const config::Config& config);

} // namespace weir::control
