// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

namespace weir::load {

/// The argument behind lcore::QueueOrder, put to the test: two threads pass a few blocks of
/// memory round through a pair of lcore::Handoff, `times` times. Each value has to come out
/// once, in the order in which it went in, and with its block as the other side left it. EAL is up.
/// Returns what was wrong, empty when nothing was.
std::string check_handoff(std::uint64_t times);

} // namespace weir::load
