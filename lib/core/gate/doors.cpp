// SPDX-License-Identifier: BSD-3-Clause
#include "gate/doors.hpp"

#include "gate/connection_limits.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <future>
#include <grpcpp/security/server_credentials.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

namespace weir::gate {
namespace {

using net::ListeningSocket;
using Milliseconds = Doors::Milliseconds;

// Calls under way get so long at the end.
constexpr Milliseconds kLastCalls{500};
// When descriptors or memory have run out: the caller still waits, and poll() would return at once.
constexpr Milliseconds kAcceptPause{100};

} // namespace

Doors::Doors(const Places& places, const Orders& orders, Process::Tell tell)
    : profile_(*orders.profile), closed_(eventfd(0, EFD_CLOEXEC)),
      open_(profile_.most_local_connections), of_gate_(profile_.most_connections) {
  if (closed_ < 0) {
    throw std::system_error(errno, std::generic_category(), "eventfd");
  }
  try {
    for (const std::string& path : places.local) {
      sockets_.push_back(ListeningSocket::at_path(path));
    }
    open_gate(places, orders, std::move(tell));
  } catch (...) {
    ::close(closed_);
    throw;
  }
}

Doors::~Doors() {
  ::close(closed_);
}

/// It reads the files again for each connection. Here they are read to refuse what is none of them.
void Doors::open_gate(const Places& places, const Orders& orders, Process::Tell tell) {
  if (places.remote.empty()) {
    return;
  }
  read_tls_files(orders.files, profile_.section);
  std::vector<ListeningSocket> doors;
  for (const std::string& address : places.remote) {
    doors.push_back(ListeningSocket::at_address(address));
  }
  gate_.emplace(std::move(doors), orders, std::move(tell));
}

void Doors::lead_to(grpc::ServerBuilder& builder) {
  bound_connections(builder, profile_, profile_.idle_at_service);
  acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      grpc::InsecureServerCredentials());
}

bool Doors::serve(Milliseconds longest) {
  if (gate_) {
    gate_->look_after(Process::Clock::now());
  }
  if (is_closed()) {
    return false;
  }
  wait_for_callers(std::clamp(longest, Milliseconds(0), kPeriod));
  return true;
}

void Doors::close() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t count = ::write(closed_, &one, sizeof one);
}

bool Doors::is_closed() const {
  pollfd closed{closed_, POLLIN, 0};
  return poll(&closed, 1, 0) == 1;
}

/// gRPC 1.51 waits without a limit for an answer that a socket does not take, because the client
/// does not read: it is stopped, perhaps.
void Doors::end(grpc::Server& server) {
  gate_.reset(); // who comes from now on is refused, and does not wait
  sockets_.clear();
  std::promise<void> has_ended;
  std::thread last_resort([this, ended = has_ended.get_future()] {
    if (ended.wait_for(2 * kLastCalls) == std::future_status::timeout) {
      open_.hang_up();
      of_gate_.hang_up();
    }
  });
  server.Shutdown(std::chrono::system_clock::now() + kLastCalls);
  server.Wait();
  has_ended.set_value();
  last_resort.join();
}

/// Without a gate its place has a descriptor that poll() passes over.
void Doors::wait_for_callers(Milliseconds longest) {
  std::vector<pollfd> waited{{closed_, POLLIN, 0}, {gate_ ? gate_->channel() : -1, POLLIN, 0}};
  for (const ListeningSocket& socket : sockets_) {
    waited.push_back({socket.descriptor(), POLLIN, 0});
  }
  if (poll(waited.data(), waited.size(), static_cast<int>(longest.count())) <= 0) {
    return;
  }
  if ((waited[1].revents & POLLIN) != 0) {
    if (const std::optional<int> connection = gate_->take()) {
      serve_if_room(*connection, of_gate_);
    }
  }
  std::size_t place = 2;
  for (const ListeningSocket& socket : sockets_) {
    if (waited[place++].revents != 0) {
      let_in(socket);
    }
  }
}

void Doors::let_in(const ListeningSocket& socket) {
  const int connection = socket.accept();
  if (connection >= 0) {
    serve_if_room(connection, open_);
  } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
    std::this_thread::sleep_for(kAcceptPause);
  }
}

/// gRPC has the connection from here on.
void Doors::serve_if_room(int connection, net::OpenConnections& others) {
  if (!others.add(connection)) {
    ::close(connection);
    return;
  }
  Acceptor::NewConnectionParameters parameters;
  parameters.fd = connection;
  acceptor_->HandleNewConnection(&parameters);
}

} // namespace weir::gate
