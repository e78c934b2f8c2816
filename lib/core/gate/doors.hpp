// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gate/orders.hpp"
#include "gate/process.hpp"
#include "net/listening_socket.hpp"
#include "net/open_connections.hpp"

#include <chrono>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir::gate {

/// By which the clients of a server of gRPC's come: Unix sockets for root and this process' user,
/// and weir-gate for addresses of the network.
class Doors {
 public:
  using Milliseconds = std::chrono::milliseconds;

  /// How often it is looked whether the gate runs: no serve() is longer.
  static constexpr Milliseconds kPeriod{1000};

  struct Places {
    std::vector<std::string> local;  // paths of Unix sockets
    std::vector<std::string> remote; // "ADDRESS:PORT", IPv6 in brackets
  };

  /// Listens. Nobody is served yet. Throws net::ListenError, and TlsFileError if there is a remote
  /// place.
  Doors(const Places& places, const Orders& orders, Process::Tell tell);
  ~Doors();
  Doors(const Doors&) = delete;
  Doors& operator=(const Doors&) = delete;

  /// The server that is built has this as its only way in, and bounds what a connection takes.
  void lead_to(grpc::ServerBuilder& builder);

  /// Lets in who comes, for so long at most, and never longer than kPeriod, and looks after the
  /// gate. For one thread, which comes again and again. False: they are closed.
  bool serve(Milliseconds longest = kPeriod);

  /// serve() comes back, and lets nobody in any more. Any thread.
  void close();

  /// Ends the server that they lead to, after close().
  void end(grpc::Server& server);

 private:
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

  void open_gate(const Places& places, const Orders& orders, Process::Tell tell);
  bool is_closed() const;
  void wait_for_callers(Milliseconds longest);
  void let_in(const net::ListeningSocket& socket);
  void serve_if_room(int connection, net::OpenConnections& others);

  const Profile& profile_;
  const int closed_;
  std::vector<net::ListeningSocket> sockets_; // of local clients
  net::OpenConnections open_;
  std::optional<Process> gate_;  // by which the network's come
  net::OpenConnections of_gate_; // which bounds them too, but may be taken over
  std::unique_ptr<Acceptor> acceptor_;
};

} // namespace weir::gate
