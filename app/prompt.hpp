// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "command/commands.hpp"

#include <atomic>
#include <functional>
#include <string>

namespace weir::app {

/// The `weir> ` prompt on a terminal: line editing, history with the arrows, completion with Tab.
/// Returns at the end of input, or soon after `stop` becomes true. Calls `meanwhile` while it waits
/// for a key, some times in a second, and prints what it returns.
void run_prompt(const command::Commands& commands, const std::atomic<bool>& stop,
                const std::function<std::string()>& meanwhile);

} // namespace weir::app
