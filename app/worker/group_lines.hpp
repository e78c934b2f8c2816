// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What weir-worker prints of its group.

#include "host/api/group.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weir::app {

/// Who the rank is, and who reduces: a line for stdout. `schedule` is the hosts' ring's, or empty.
std::string greeting_of(const host::Group& group, std::string_view schedule);

/// For such a line: why the hosts reduce, and why rings are left out. Empty if neither is so.
std::string reasons_of(std::string_view fallback, std::string_view missing_rings);

/// Members of a JSON object: the rings that carry the calls, and why others do not.
std::string rings_json(std::span<const std::uint32_t> rings, std::string_view missing_rings);

/// Packets that this rank repeated; "unknown" over verbs.
std::string retransmissions_of(const host::Group& group);

/// How the hosts' ring reduces the call's type. Empty when the switch reduces.
std::string_view schedule_of(const host::Group& group, const host::Call& call);

} // namespace weir::app
