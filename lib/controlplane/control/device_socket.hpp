// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::control {

/// The Unix socket of a device, as a file: net_memif's, net_vhost's or net_virtio_user's, whoever
/// listens on it. Empty for other devices.
std::string socket_file_of(std::string_view devargs);

/// A Unix socket on which a driver listens, as a file.
struct DeviceSocket {
  std::string file;
  int type = 0; // SOCK_…
  // Several ports of one switch may listen on it. Then only the driver knows a stranger's.
  bool is_shared = false;
};

/// The socket on which a device with these devargs will listen: a net_memif server or a net_vhost
/// server. None for other devices, for clients, and for abstract sockets, which have no file.
std::optional<DeviceSocket> device_socket(std::string_view devargs);

/// What is where a driver wants to listen.
enum class Occupant : std::uint8_t {
  nobody,
  stale_socket, // nobody listens: a killed process leaves such a file, and a new bind would fail
  listener,
  other_file, // no socket
};

Occupant occupant_of(const DeviceSocket& socket);

/// Whether a device with these devargs looks only at its start for who listens on its socket, which
/// is a file.
bool connects_once(std::string_view devargs);

/// The inode of each connection of this process to a socket that is called as that of such a
/// device, in any folder: its server may name the same file otherwise.
std::vector<std::uint64_t> connections_of(std::string_view devargs);

/// Whether such a device cannot start now: nobody listens, or who does has not accepted all
/// callers, so that to call might block.
bool has_to_wait_for_listener(std::string_view devargs);

} // namespace weir::control
