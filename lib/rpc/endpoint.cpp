// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/endpoint.hpp"

#include "net/listening_socket.hpp"
#include "net/open_connections.hpp"
#include "rpc/service.hpp"
#include "rpc/tls_files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
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

// What a client can take: each message, each connection, all of them.
constexpr int kMostRequestBytes = 65536;
constexpr int kMostStreams = 64;             // of a connection
constexpr std::size_t kMostConnections = 64; // of local clients, and of remote ones
constexpr std::size_t kMostBytes = std::size_t{64} << 20;
constexpr int kMostThreads = 8; // for reflection, whose calls hold one each
constexpr Milliseconds kHandshake{5000};
constexpr Milliseconds kIdleConnection{60'000};
constexpr Milliseconds kSignOfLife{30'000}; // a client that does not answer is gone
// Calls under way get so long at the end.
constexpr Milliseconds kLastCalls{500};
// How often the lcores are asked whether they work, and which held rings are still there.
constexpr Milliseconds kHealthPeriod{5000};
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

/// Clients without a certificate of the authority get nothing.
std::shared_ptr<grpc::ServerCredentials> mutual_tls(const config::TlsFiles& files) {
  const PemTexts texts = read_tls_files(files);
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = texts.client_authority;
  options.pem_key_cert_pairs.push_back({texts.key, texts.certificate});
  return grpc::SslServerCredentials(options);
}

void set_limits(grpc::ServerBuilder& builder) {
  const auto set = [&builder](const char* argument, auto value) {
    builder.AddChannelArgument(argument, static_cast<int>(value));
  };
  builder.SetResourceQuota(
      grpc::ResourceQuota("weir.control").Resize(kMostBytes).SetMaxThreads(kMostThreads));
  builder.SetMaxReceiveMessageSize(kMostRequestBytes);
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
  set(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostStreams);
  set(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshake.count());
  set(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleConnection.count());
  set(GRPC_ARG_KEEPALIVE_TIME_MS, kSignOfLife.count());
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kSignOfLife.count());
  set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
}

} // namespace

/// Sockets of one kind and the way of their connections into gRPC.
struct Entrance {
  std::vector<ListeningSocket> sockets;
  std::unique_ptr<Acceptor> acceptor;
  OpenConnections open{kMostConnections};

  void take_from(const ListeningSocket& socket) {
    const int connection = socket.accept();
    if (connection < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
        std::this_thread::sleep_for(kPause);
      }
      return;
    }
    if (!open.add(connection)) {
      close(connection);
      return;
    }
    Acceptor::NewConnectionParameters parameters;
    parameters.listener_fd = socket.descriptor();
    parameters.fd = connection;
    acceptor->HandleNewConnection(&parameters);
  }
};

struct Endpoint::Parts {
  Parts(Backend& given, const config::ControlConfig& where);
  ~Parts();
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  void open_sockets(const config::ControlConfig& where);
  void start_server(const config::ControlConfig& where);
  /// The loop of `doorkeeper`.
  void keep_doors();
  void look_after_health();
  void wait_for_callers(Milliseconds longest);

  Backend& backend;
  Service service{backend};
  Entrance local;
  Entrance remote;
  std::unique_ptr<grpc::Server> server;
  int end = eventfd(0, EFD_CLOEXEC);
  std::thread doorkeeper;
};

Endpoint::Parts::Parts(Backend& given, const config::ControlConfig& where) : backend(given) {
  try {
    open_sockets(where);
    start_server(where);
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
  if (write(end, &one, sizeof one) == sizeof one) {
    doorkeeper.join();
  }
  close(end);
  service.held_rings().end();
  server->GetHealthCheckService()->Shutdown();
  server->Shutdown(std::chrono::system_clock::now() + kLastCalls);
  server->Wait();
}

void Endpoint::Parts::open_sockets(const config::ControlConfig& where) {
  for (const std::string& path : where.local) {
    local.sockets.push_back(ListeningSocket::at_path(path));
  }
  for (const std::string& address : where.remote) {
    remote.sockets.push_back(ListeningSocket::at_address(address));
  }
}

void Endpoint::Parts::start_server(const config::ControlConfig& where) {
  using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  silence_library();
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  set_limits(builder);
  builder.RegisterService(&service);
  local.acceptor = builder.experimental().AddExternalConnectionAcceptor(
      Type::FROM_FD, grpc::InsecureServerCredentials());
  if (where.tls) {
    remote.acceptor =
        builder.experimental().AddExternalConnectionAcceptor(Type::FROM_FD, mutual_tls(*where.tls));
  }
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
      due = now + kHealthPeriod;
    }
    pollfd ended{end, POLLIN, 0};
    if (poll(&ended, 1, 0) == 1) {
      return;
    }
    wait_for_callers(std::chrono::ceil<Milliseconds>(due - now));
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

void Endpoint::Parts::wait_for_callers(Milliseconds longest) {
  std::vector<pollfd> waited{{end, POLLIN, 0}};
  for (const Entrance* entrance : {&local, &remote}) {
    for (const ListeningSocket& socket : entrance->sockets) {
      waited.push_back({socket.descriptor(), POLLIN, 0});
    }
  }
  if (poll(waited.data(), waited.size(), static_cast<int>(longest.count())) <= 0) {
    return;
  }
  std::size_t place = 1;
  for (Entrance* entrance : {&local, &remote}) {
    for (const ListeningSocket& socket : entrance->sockets) {
      if (waited[place++].revents != 0) {
        entrance->take_from(socket);
      }
    }
  }
}

bool has_endpoint() {
  return true;
}

Endpoint::Endpoint(Backend& backend, const config::ControlConfig& where)
    : parts_(std::make_unique<Parts>(backend, where)) {}

Endpoint::~Endpoint() = default;

} // namespace weir::rpc
