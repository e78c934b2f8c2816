// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/bootstrap/stream.hpp"

#include <chrono>
#include <cstdint>
#include <utility>

namespace weir::host {

/// Finds out by a TCP connection whether a process lives that listens somewhere. Nothing is said on
/// the connection, and the process need not accept it: its kernel answers. Never blocks.
class Reach {
 public:
  enum class State : std::uint8_t {
    trying,
    alive,  // as far as the kernel there knows
    ended,  // its kernel says that nobody listens
    silent, // no answer in time: the machine or the network to it is gone, so nobody knows
  };

  /// Who does not answer within `patience` is silent.
  Reach(const Endpoint& endpoint, std::chrono::milliseconds patience);
  ~Reach();
  Reach(const Reach&) = delete;
  Reach& operator=(const Reach&) = delete;

  /// Tries again when a connection has closed: only a refusal shows that nobody listens. Throws
  /// std::runtime_error when this process has no descriptor or memory left.
  State look();

  /// The connection to a process that is alive. Nothing else may be called after it.
  Socket take() { return std::move(socket_); }

 private:
  void begin();
  void connect();
  State finish();
  State watch();
  State judge(int error);

  const Endpoint endpoint_;
  const std::chrono::milliseconds patience_;
  Socket socket_;
  Deadline deadline_; // to connect
  State state_ = State::trying;
};

} // namespace weir::host
