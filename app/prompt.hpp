// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "command/commands.hpp"

#include <atomic>

namespace weir::app {

/// The `weir> ` prompt on a terminal: line editing, history with the arrows, completion with Tab.
/// Returns at the end of input, or soon after `stop` becomes true.
void run_prompt(const command::Commands& commands, const std::atomic<bool>& stop);

} // namespace weir::app
