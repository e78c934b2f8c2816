// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace weir::ethdev {

/// Stops the device on the thread that its driver's row names. The caller is no MemifReader between
/// enter() and leave(). Throws std::system_error when EAL cannot run anything on that thread.
void stop_device(std::uint16_t device);

/// Stops and closes the device, as stop_device(). Its number is free afterwards.
void stop_and_close_device(std::uint16_t device);

} // namespace weir::ethdev
