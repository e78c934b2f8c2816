// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace weir::app {

/// From now on a signal that ends the process is named on standard error first, but for SIGKILL:
/// who looks at the output alone must see why there is no more of it. The status stays the
/// signal's. `program` lives as long as the process.
void name_fatal_signals(const char* program);

} // namespace weir::app
