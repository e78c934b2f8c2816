// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <grpcpp/server_builder.h>

namespace weir::rpc {

/// Ends a connection on which nothing was called for so long. The gate ends its clients' ones
/// earlier than the switch its own, so that no call meets the end of the switch's side.
inline constexpr std::chrono::milliseconds kIdleAtSwitch{60'000};
inline constexpr std::chrono::milliseconds kIdleAtGate{50'000};

/// Calls of a connection at once.
inline constexpr int kMostCalls = 64;

/// What a client can take by one connection, at the switch and at the gate.
inline void bound_connections(grpc::ServerBuilder& builder, std::chrono::milliseconds idle) {
  constexpr int most_request_bytes = 65536;
  constexpr std::chrono::milliseconds handshake{5000};
  constexpr std::chrono::milliseconds sign_of_life{30'000}; // who does not answer is gone
  const auto set = [&builder](const char* argument, auto value) {
    builder.AddChannelArgument(argument, static_cast<int>(value));
  };
  builder.SetMaxReceiveMessageSize(most_request_bytes);
  set(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostCalls);
  set(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, handshake.count());
  set(GRPC_ARG_MAX_CONNECTION_IDLE_MS, idle.count());
  set(GRPC_ARG_KEEPALIVE_TIME_MS, sign_of_life.count());
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, sign_of_life.count());
  set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
}

} // namespace weir::rpc
