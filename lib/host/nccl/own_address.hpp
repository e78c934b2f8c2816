// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <sys/socket.h>

namespace weir::nccl {

/// By which address other hosts reach this one over TCP: of the interface that NCCL_SOCKET_IFNAME
/// names first (its beginning, as with NCCL, or "=" and its whole name), else of `interface`, else
/// of the first one that is up; the loopback's if there is nothing else. IPv4 before IPv6, no
/// link-local address. Port 0. Throws Failure if there is none.
sockaddr_storage own_address(const std::string& interface);

} // namespace weir::nccl
