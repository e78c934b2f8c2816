// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/endpoint.hpp"

#include "gate/process.hpp"
#include "net/listening_socket.hpp"
#include "net/open_connections.hpp"
#include "rpc/connection_limits.hpp"
#include "rpc/service.hpp"
#include "rpc/tls_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <future>
#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>
#include <iterator>
#include <mutex>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace weir::rpc {
namespace {

using Acceptor = grpc::experimental::ExternalConnectionAcceptor;
using net::ListeningSocket;
using net::OpenConnections;
using Milliseconds = std::chrono::milliseconds;

// What all clients can take together.
constexpr std::size_t kMostConnections = 64; // of local clients, and of the gate
constexpr std::size_t kMostBytes = std::size_t{64} << 20;
constexpr int kMostThreads = 8; // for reflection, whose calls hold one each
// Calls under way get so long at the end.
constexpr Milliseconds kLastCalls{500};
// How often the lcores are asked whether they work, and which held rings are still there.
constexpr Milliseconds kHealthPeriod{5000};
// How often it is looked whether the gate runs.
constexpr Milliseconds kGatePeriod{1000};
// When descriptors or memory have run out: the caller still waits, and poll() would return at once.
constexpr Milliseconds kPause{100};

/// Health as clients ask for it: of this service, or of the whole server.
constexpr const char* kServiceName = "weir.v1.Switch";

/// gRPC's own log has a line for every stranger's bad handshake. Who looks for a fault sets
/// GRPC_VERBOSITY and gets it.
void silence_library() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) {
    gpr_set_log_function([](gpr_log_func_args*) {});
  }
}

void set_limits(grpc::ServerBuilder& builder) {
  builder.SetResourceQuota(
      grpc::ResourceQuota("weir.control").Resize(kMostBytes).SetMaxThreads(kMostThreads));
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
  bound_connections(builder, kIdleAtSwitch);
}

} // namespace

struct Endpoint::Parts {
  Parts(Backend& given, const config::ControlConfig& where, Tell tell);
  ~Parts();
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  void open_sockets(const config::ControlConfig& where);
  void open_gate(const config::ControlConfig& where, Tell tell);
  void start_server();
  void end_server();
  /// The loop of `doorkeeper`.
  void keep_doors();
  void look_after_health();
  void look_after_fabric();
  void wait_for_callers(Milliseconds longest);
  void let_in(const ListeningSocket& socket);
  void serve_if_room(int connection, OpenConnections& others);
  /// gRPC has the connection from here on.
  void serve(int connection);

  Backend& backend;
  Service service{backend};
  std::vector<ListeningSocket> sockets; // of local clients
  OpenConnections open{kMostConnections};
  std::optional<gate::Process> gate;         // by which the network's come
  OpenConnections of_gate{kMostConnections}; // which bounds them too, but may be taken over
  std::unique_ptr<Acceptor> acceptor;
  std::unique_ptr<grpc::Server> server;
  int end = eventfd(0, EFD_CLOEXEC);
  std::thread doorkeeper;
};

Endpoint::Parts::Parts(Backend& given, const config::ControlConfig& where, Tell tell)
    : backend(given) {
  try {
    open_sockets(where);
    open_gate(where, std::move(tell));
    start_server();
  } catch (const net::ListenError& error) {
    close(end);
    throw EndpointError(std::string("control.listen: ") + error.what());
  } catch (const std::runtime_error& error) {
    close(end);
    throw EndpointError(error.what());
  }
  doorkeeper = std::thread([this] { keep_doors(); });
}

Endpoint::Parts::~Parts() {
  const std::uint64_t one = 1;
  if (::write(end, &one, sizeof one) == sizeof one) {
    doorkeeper.join();
  }
  close(end);
  service.held_rings().end();
  service.held_regions().end();
  server->GetHealthCheckService()->Shutdown();
  end_server();
}

/// gRPC 1.51 waits without a limit for an answer that a socket does not take, because the client
/// does not read: it is stopped, perhaps.
void Endpoint::Parts::end_server() {
  std::promise<void> has_ended;
  std::thread last_resort([this, ended = has_ended.get_future()] {
    if (ended.wait_for(2 * kLastCalls) == std::future_status::timeout) {
      open.hang_up();
      of_gate.hang_up();
    }
  });
  server->Shutdown(std::chrono::system_clock::now() + kLastCalls);
  server->Wait();
  has_ended.set_value();
  last_resort.join();
}

void Endpoint::Parts::open_sockets(const config::ControlConfig& where) {
  for (const std::string& path : where.local) {
    sockets.push_back(ListeningSocket::at_path(path));
  }
}

/// It reads the files again for each connection. Here they are read to refuse what is none of them.
void Endpoint::Parts::open_gate(const config::ControlConfig& where, Tell tell) {
  if (where.remote.empty() || !where.tls) {
    return;
  }
  read_tls_files(*where.tls);
  std::vector<ListeningSocket> doors;
  for (const std::string& address : where.remote) {
    doors.push_back(ListeningSocket::at_address(address));
  }
  gate.emplace(std::move(doors), *where.tls, std::move(tell));
}

void Endpoint::Parts::start_server() {
  using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  silence_library();
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  set_limits(builder);
  builder.RegisterService(&service);
  acceptor = builder.experimental().AddExternalConnectionAcceptor(
      Type::FROM_FD, grpc::InsecureServerCredentials());
  server = builder.BuildAndStart();
  if (server == nullptr) {
    throw EndpointError("control.listen: gRPC does not start its server");
  }
  server->GetHealthCheckService()->SetServingStatus(kServiceName, true);
}

void Endpoint::Parts::keep_doors() {
  auto due = std::chrono::steady_clock::now();
  while (true) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= due) {
      look_after_health();
      service.held_rings().look_after();
      service.held_regions().look_after();
      look_after_fabric();
      due = now + kHealthPeriod;
    }
    if (gate) {
      gate->look_after(now);
    }
    pollfd ended{end, POLLIN, 0};
    if (poll(&ended, 1, 0) == 1) {
      return;
    }
    wait_for_callers(std::min(kGatePeriod, std::chrono::ceil<Milliseconds>(due - now)));
  }
}

void Endpoint::Parts::look_after_health() {
  bool serves = true;
  try {
    backend.check_lcores();
  } catch (const std::exception&) {
    serves = false;
  }
  grpc::HealthCheckServiceInterface& health = *server->GetHealthCheckService();
  health.SetServingStatus(serves); // of all services
}

/// An lcore that does not stop now is asked again.
void Endpoint::Parts::look_after_fabric() {
  try {
    service.fabric_rings().look_after();
  } catch (const std::exception&) {
  }
}

/// Without a gate its place has a descriptor that poll() passes over.
void Endpoint::Parts::wait_for_callers(Milliseconds longest) {
  std::vector<pollfd> waited{{end, POLLIN, 0}, {gate ? gate->channel() : -1, POLLIN, 0}};
  for (const ListeningSocket& socket : sockets) {
    waited.push_back({socket.descriptor(), POLLIN, 0});
  }
  if (poll(waited.data(), waited.size(), static_cast<int>(longest.count())) <= 0) {
    return;
  }
  if ((waited[1].revents & POLLIN) != 0) {
    if (const std::optional<int> connection = gate->take()) {
      serve_if_room(*connection, of_gate);
    }
  }
  std::size_t place = 2;
  for (const ListeningSocket& socket : sockets) {
    if (waited[place++].revents != 0) {
      let_in(socket);
    }
  }
}

void Endpoint::Parts::let_in(const ListeningSocket& socket) {
  const int connection = socket.accept();
  if (connection < 0) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      std::this_thread::sleep_for(kPause);
    }
  } else {
    serve_if_room(connection, open);
  }
}

void Endpoint::Parts::serve_if_room(int connection, OpenConnections& others) {
  if (others.add(connection)) {
    serve(connection);
  } else {
    close(connection);
  }
}

void Endpoint::Parts::serve(int connection) {
  Acceptor::NewConnectionParameters parameters;
  parameters.fd = connection;
  acceptor->HandleNewConnection(&parameters);
}

bool has_endpoint() {
  return true;
}

Endpoint::Endpoint(Backend& backend, const config::ControlConfig& where, Tell tell)
    : parts_(std::make_unique<Parts>(backend, where, std::move(tell))) {}

Endpoint::~Endpoint() = default;

} // namespace weir::rpc
