// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gate/profile.hpp"

#include <chrono>
#include <grpcpp/server_builder.h>

namespace weir::gate {

/// What a client can take by one connection, at the service and at its gate.
inline void bound_connections(grpc::ServerBuilder& builder, const Profile& profile,
                              std::chrono::milliseconds idle) {
  constexpr std::chrono::milliseconds handshake{5000};
  const auto set = [&builder](const char* argument, auto value) {
    builder.AddChannelArgument(argument, static_cast<int>(value));
  };
  builder.SetMaxReceiveMessageSize(profile.request_bytes);
  set(GRPC_ARG_MAX_CONCURRENT_STREAMS, profile.calls_at_once);
  set(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, handshake.count());
  set(GRPC_ARG_MAX_CONNECTION_IDLE_MS, idle.count());
  set(GRPC_ARG_KEEPALIVE_TIME_MS, profile.sign_of_life.count());
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, profile.sign_of_life.count());
  set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  if (profile.service_sign.count() != 0) {
    set(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, profile.service_sign.count());
  }
}

} // namespace weir::gate
