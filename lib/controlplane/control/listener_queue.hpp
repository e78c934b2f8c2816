// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>

namespace weir::control {

/// How many callers whoever listens on this Unix socket has not accepted yet (sock_diag(7)). 0 also
/// if nobody listens, or if the kernel does not tell: it tells of this network namespace alone.
std::uint32_t waiting_callers(const std::filesystem::path& socket);

} // namespace weir::control
