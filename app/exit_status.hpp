// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace weir::app {

// A program's exit status; 0: it did what it was asked.
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2; // the command line, or a file that it names, is wrong

} // namespace weir::app
