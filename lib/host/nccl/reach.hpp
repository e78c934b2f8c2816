// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <string>

namespace weir::nccl {

/// How long a switch may take to answer.
inline constexpr std::chrono::milliseconds kPatience{2000};

/// Connects to a control service, unix:/PATH or HOST:PORT, and closes the connection. Throws
/// Failure if nobody takes it within kPatience.
void reach(const std::string& address);

} // namespace weir::nccl
