// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"
#include "gate/incident.hpp"
#include "rpc/backend.hpp"

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

namespace weir::rpc {

/// It cannot listen at an address, or not with these certificates. what() has the cause.
class EndpointError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// False for a build without gRPC.
bool has_endpoint();

/// The control service (proto/weir/v1/switch.proto), gRPC's health service and server reflection,
/// while it lives. Threads of its own answer; a call under way at its end is cancelled.
class Endpoint {
 public:
  /// Told what an operator should know of callers by the network, also in a sentence.
  using Tell = std::function<void(gate::Incident, const std::string&)>;

  /// `backend` outlives it. `where.is_default` is not looked at: `where.local` and `where.remote`
  /// are the addresses. Throws EndpointError.
  Endpoint(Backend& backend, const config::ControlConfig& where, Tell tell);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

} // namespace weir::rpc
