// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::control {

/// Where a device of these devargs will listen: the socket file of a net_memif server. None for any
/// other device, for clients and for abstract sockets, which leave no file.
std::optional<std::string> memif_socket_file(std::string_view devargs);

/// Removes a socket file at which nobody listens, as a process that was killed leaves it and
/// binding a new one refuses it. True when it did; what is no socket, or has a listener, stays.
bool remove_stale_socket(const std::string& file);

} // namespace weir::control
