// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace weir::net {

/// The bytes of the address of a connection's other end. Empty: a Unix socket's, or of one who has
/// gone.
std::string address_of_peer(int connection);

/// Of such bytes of IPv6 the network of 64 bits, in which a host chooses any address; else they.
std::string network_of(const std::string& address);

} // namespace weir::net
