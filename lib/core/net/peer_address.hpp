// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace weir::net {

/// Whose part a connection takes: the bytes of its other end's address, and of an IPv6 address its
/// network of 64 bits, in which a host chooses any. Empty: a Unix socket's, or of one who has gone.
std::string address_of_peer(int connection);

} // namespace weir::net
