// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/stream.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace weir::host {

/// Finds out by TCP connections whether a process lives that listens somewhere. Nothing is said on
/// them, and the process need not accept them: its kernel answers. Never blocks.
class LivenessProbe {
 public:
  enum class State : std::uint8_t {
    trying,
    alive,  // as far as the kernel there knows
    ended,  // kernels say that nobody listens, at each of the endpoints
    silent, // no answer in time: the machine or the network to it is gone, so nobody knows
  };

  /// Tries all endpoints, which are the process's own, as far as it knows. Some of them may mean
  /// other machines here. Who does not answer within `patience` is silent.
  LivenessProbe(const std::vector<Endpoint>& endpoints, std::chrono::milliseconds patience);

  /// Tries again when a connection has closed: only a refusal shows that nobody listens. Throws
  /// std::runtime_error when this process has no descriptor or memory left.
  State check();

  /// Where the process is alive, and the connection to it. Nothing else may be called after it.
  std::pair<Endpoint, Socket> take();

 private:
  class Attempt;

  std::vector<std::unique_ptr<Attempt>> attempts_; // one for each endpoint
};

/// One endpoint's part of it.
class LivenessProbe::Attempt {
 public:
  Attempt(const Endpoint& endpoint, std::chrono::milliseconds patience);
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  State check();

  State state() const { return state_; }

  std::pair<Endpoint, Socket> take() { return {endpoint_, std::move(socket_)}; }

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
