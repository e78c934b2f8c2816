// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

namespace weir::load {

/// Tests the argument for lcore::QueueOrder. Two threads pass a few blocks of memory through a pair
/// of lcore::Handoff, `times` times. Each value must come out once, in order, with its block as the
/// other side left it. EAL is up. Returns what was wrong; empty when nothing was.
std::string check_handoff(std::uint64_t times);

} // namespace weir::load
