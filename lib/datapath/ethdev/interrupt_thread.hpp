// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

namespace weir::ethdev {

/// Runs `work` on EAL's interrupt thread, and waits until it is done. Drivers hear of their other
/// ends on this thread, so nothing that they do there happens meanwhile. The caller is no
/// MemifReader between enter() and leave(), and keeps none from leaving a burst. Throws what `work`
/// throws, and std::system_error when EAL cannot run it.
void on_interrupt_thread(std::function<void()> work);

/// Keeps EAL's interrupt thread from all work, as long as the process lives. Call it once. Throws
/// std::system_error when EAL cannot run anything there.
void park_interrupt_thread();

} // namespace weir::ethdev
