// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/call.hpp"
#include "host/collective/slice.hpp"

#include <cstdint>
#include <vector>

namespace weir::host {

/// Buffers for a call whose caller takes its own back: what this rank brings, copied to `memory`,
/// and a place there for what it gets. They are valid as long as `memory` stays.
CallBuffers copy_call(const Call& call, const Place& place, const CallBuffers& buffers,
                      std::vector<std::uint8_t>& memory);

} // namespace weir::host
