// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace weir::app {

/// From now on, a signal that ends the process is first named on standard error; SIGKILL cannot be.
/// So the output shows why it ends. The exit status stays that of the signal. `program` must stay
/// valid until the process ends.
void name_fatal_signals(const char* program);

} // namespace weir::app
