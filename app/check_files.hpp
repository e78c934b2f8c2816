// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <string>

namespace weir::app {

/// Whether configurations are in order.
enum class Verdict { in_order, mistakes };

/// Reads configurations, and compares those of several switches: their files are named after them.
/// Prints what is in order, and each mistake as an error. Touches no port and needs no EAL. Throws
/// UsageError without a file.
Verdict check_files(std::span<char* const> files);

/// The same for the file by which a switch would start on this machine: also tries its operators,
/// and tells which CPUs the switch would take.
Verdict try_out(const std::string& file);

} // namespace weir::app
