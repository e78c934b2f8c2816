// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <grpcpp/server_context.h>
#include <string>
#include <vector>

namespace weir::gate {

/// What a service knows of who calls.
struct Peer {
  bool is_local = false; // by a Unix socket
  std::string address;   // its bytes (net::address_of_peer), by the network
  // Of the certificate, which the clients' authority has signed; none by a Unix socket.
  std::vector<std::string> common_names;
};

Peer peer_of(const grpc::CallbackServerContext& context);

} // namespace weir::gate
