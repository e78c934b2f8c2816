// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace weir::app {

/// Has body(rank) run for ranks first .. first + count - 1, each in a process of its own that ends
/// with what it returns. They end with this process at the latest. Returns when all have ended: 0,
/// or the status of the first that ended otherwise. `program` tells its death if it was one. Call
/// it before there are threads. Throws std::runtime_error when there are no more processes.
int run_local_ranks(std::string_view program, std::uint16_t first, std::uint16_t count,
                    const std::function<int(std::uint16_t rank)>& body);

} // namespace weir::app
