// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "command/commands.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

namespace weir::app {

/// Why a prompt is over.
enum class PromptEnd : std::uint8_t {
  stop,          // somebody has asked the switch to stop
  terminal_gone, // nobody has
};

/// The `weir> ` prompt on a terminal: line editing, history with the arrows, completion with Tab.
/// Returns soon after `stop` becomes true, or when the terminal hangs up. Calls `meanwhile` while
/// it waits for a key, some times in a second, and prints what it returns.
PromptEnd run_prompt(const command::Commands& commands, const std::atomic<bool>& stop,
                     const std::function<std::string()>& meanwhile);

} // namespace weir::app
