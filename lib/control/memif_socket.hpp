// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::control {

/// The socket file on which a net_memif server with these devargs will listen. None for other
/// devices, for clients, and for abstract sockets, which have no file.
std::optional<std::string> memif_socket_file(std::string_view devargs);

/// Removes a socket file on which no process listens. A killed process leaves such a file, and a
/// new bind would fail. True when it removed one. It never removes a file that is no socket or has
/// a listener.
bool remove_stale_socket(const std::string& file);

} // namespace weir::control
