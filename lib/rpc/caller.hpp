// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"

#include <grpcpp/server_context.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace weir::rpc {

/// A caller may not do this. what() says who he is and what he may do.
class NotAllowed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What gRPC knows of who calls.
struct Peer {
  std::string address; // "unix:…", "ipv4:…", "ipv6:…"
  // Of the certificate, which the clients' authority has signed; none by a Unix socket.
  std::vector<std::string> common_names;
};

Peer peer_of(const grpc::CallbackServerContext& context);

/// An operator, who may do all, or a tenant.
struct Caller {
  std::string tenant; // its name; empty: an operator

  bool is_operator() const { return tenant.empty(); }
};

/// Who calls by a Unix socket is an operator: the switch's door has asked the kernel for his user.
/// Over the network the certificate's common name decides (docs/control.md). Throws NotAllowed for
/// a name that the configuration does not have.
Caller caller_of(const Peer& peer, const config::Config& config);

} // namespace weir::rpc
