// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

namespace weir::gate {

/// Of the service behind a gate: its words, and what its clients can take.
struct Profile {
  std::string_view name;    // weir-gate's first word
  std::string_view section; // with the files of its TLS, in its configuration

  std::size_t most_local_connections; // by Unix sockets
  std::size_t most_connections;       // by the network
  std::size_t most_of_an_address;
  std::size_t most_of_a_network; // of 64 bits in IPv6; in IPv4 it is the address
  double calls_per_second;       // of a connection
  int calls_at_once;             // likewise
  int request_bytes;

  // Ends a connection on which nothing was called for so long. The gate ends its clients' ones
  // earlier than the service its own, so that no call meets the end of the service's side.
  std::chrono::milliseconds idle_at_service;
  std::chrono::milliseconds idle_at_gate;
  std::chrono::milliseconds sign_of_life; // a client that does not answer within it is gone
  // Clients may ask so often whether the service lives, and the gate asks for them: without, a
  // service that stands still behind its gate looks alive. 0: nobody asks.
  std::chrono::milliseconds service_sign;
};

/// The control service of a switch (docs/control.md).
inline constexpr Profile kOfSwitch{.name = "switch",
                                   .section = "control.tls",
                                   .most_local_connections = 64,
                                   .most_connections = 64,
                                   .most_of_an_address = 16,
                                   .most_of_a_network = 16,
                                   .calls_per_second = 200,
                                   .calls_at_once = 64,
                                   .request_bytes = 65536,
                                   .idle_at_service = std::chrono::milliseconds{60'000},
                                   .idle_at_gate = std::chrono::milliseconds{50'000},
                                   .sign_of_life = std::chrono::milliseconds{30'000},
                                   .service_sign = std::chrono::milliseconds{0}};

/// The manager of a fabric (docs/fabric.md): each job's first rank has a connection, as long as the
/// job.
inline constexpr Profile kOfManager{.name = "manager",
                                    .section = "tls",
                                    .most_local_connections = 256,
                                    .most_connections = 1024,
                                    .most_of_an_address = 64,
                                    .most_of_a_network = 512,
                                    .calls_per_second = 1000, // of a name the manager takes 100
                                    .calls_at_once = 256,
                                    .request_bytes = 1 << 20,
                                    .idle_at_service = std::chrono::milliseconds{60'000},
                                    .idle_at_gate = std::chrono::milliseconds{50'000},
                                    .sign_of_life = std::chrono::milliseconds{30'000},
                                    .service_sign = std::chrono::milliseconds{1'000}};

/// Null: there is none of this name.
constexpr const Profile* profile_named(std::string_view name) {
  for (const Profile* const profile : {&kOfSwitch, &kOfManager}) {
    if (profile->name == name) {
      return profile;
    }
  }
  return nullptr;
}

} // namespace weir::gate
