// SPDX-License-Identifier: BSD-3-Clause
#include "rpc/endpoint.hpp"

#include "gate/doors.hpp"
#include "rpc/service.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace weir::rpc {
namespace {

using Milliseconds = std::chrono::milliseconds;

// What all clients can take together.
constexpr std::size_t kMostBytes = std::size_t{64} << 20;
constexpr int kMostThreads = 8; // for reflection, whose calls hold one each
// How often the lcores are asked whether they work, and which held rings are still there.
constexpr Milliseconds kHealthPeriod{5000};
// How often it is asked which held regions have ended. No lcore stops for that.
constexpr Milliseconds kEndsPeriod{500};

/// Health as clients ask for it: of this service, or of the whole server.
constexpr const char* kServiceName = "weir.v1.Switch";

/// gRPC's own log has a line for every stranger's bad handshake. Who looks for a fault sets
/// GRPC_VERBOSITY and gets it.
void silence_library() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) {
    gpr_set_log_function([](gpr_log_func_args*) {});
  }
}

gate::Doors::Places places_of(const config::ControlConfig& where) {
  return {where.local, where.tls ? where.remote : std::vector<std::string>()};
}

gate::Orders orders_of(const config::ControlConfig& where) {
  return {&gate::kOfSwitch, gate::Certificates::required, where.tls.value_or(gate::TlsFiles{})};
}

void set_limits(grpc::ServerBuilder& builder) {
  builder.SetResourceQuota(
      grpc::ResourceQuota("weir.control").Resize(kMostBytes).SetMaxThreads(kMostThreads));
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
}

} // namespace

struct Endpoint::Parts {
  Parts(Backend& given, const config::ControlConfig& where, Tell tell);
  ~Parts();
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  void start_server();
  /// The loop of `doorkeeper`.
  void keep_doors();
  void look_after_health();
  void look_after_fabric();

  Backend& backend;
  Service service{backend};
  gate::Doors doors;
  std::unique_ptr<grpc::Server> server;
  std::thread doorkeeper;
};

Endpoint::Parts::Parts(Backend& given, const config::ControlConfig& where, Tell tell)
    : backend(given), doors(places_of(where), orders_of(where), std::move(tell)) {
  start_server();
  doorkeeper = std::thread([this] { keep_doors(); });
}

Endpoint::Parts::~Parts() {
  doors.close();
  doorkeeper.join();
  service.held_rings().end();
  service.held_regions().end();
  server->GetHealthCheckService()->Shutdown();
  doors.end(*server);
}

void Endpoint::Parts::start_server() {
  silence_library();
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  set_limits(builder);
  builder.RegisterService(&service);
  doors.lead_to(builder);
  server = builder.BuildAndStart();
  if (server == nullptr) {
    throw EndpointError("control.listen: gRPC does not start its server");
  }
  server->GetHealthCheckService()->SetServingStatus(kServiceName, true);
}

void Endpoint::Parts::keep_doors() {
  using Clock = std::chrono::steady_clock;
  auto health_due = Clock::now();
  auto ends_due = health_due;
  do {
    const auto now = Clock::now();
    if (now >= ends_due) {
      service.held_regions().look_after();
      ends_due = now + kEndsPeriod;
    }
    if (now >= health_due) {
      look_after_health();
      service.held_rings().look_after();
      look_after_fabric();
      health_due = now + kHealthPeriod;
    }
  } while (
      doors.serve(std::chrono::ceil<Milliseconds>(std::min(ends_due, health_due) - Clock::now())));
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

bool has_endpoint() {
  return true;
}

Endpoint::Endpoint(Backend& backend, const config::ControlConfig& where, Tell tell) {
  try {
    parts_ = std::make_unique<Parts>(backend, where, std::move(tell));
  } catch (const net::ListenError& error) {
    throw EndpointError(std::string("control.listen: ") + error.what());
  } catch (const std::runtime_error& error) {
    throw EndpointError(error.what());
  }
}

Endpoint::~Endpoint() = default;

} // namespace weir::rpc
