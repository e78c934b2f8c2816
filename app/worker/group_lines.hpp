// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What weir-worker prints of its group.

#include "host/api/group.hpp"

#include <string>
#include <string_view>

namespace weir::app {

/// Who the rank is, and who reduces: a line for stdout. `schedule` is the hosts' ring's, or empty.
std::string greeting_of(const host::Group& group, std::string_view schedule);

/// Packets that this rank repeated; "unknown" over verbs.
std::string retransmissions_of(const host::Group& group);

/// How the hosts' ring reduces the call's type. Empty when the switch reduces.
std::string_view schedule_of(const host::Group& group, const host::Call& call);

} // namespace weir::app
