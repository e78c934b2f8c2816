// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace weir::load {

/// EAL's interrupt thread unmaps a page while a reader of memif ports is in a burst. It must wait
/// until the reader is between two bursts, and must not wait for a reader that left. Returns what
/// went wrong; empty when nothing did.
std::string check_grace_period();

} // namespace weir::load
