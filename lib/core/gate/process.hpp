// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gate/incident.hpp"
#include "gate/orders.hpp"
#include "net/listening_socket.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace weir::gate {

/// The program weir-gate, which takes clients' connections by the network, while this lives. It is
/// started again when it ends; connections that it has taken go on without it. For one thread.
class Process {
 public:
  using Clock = std::chrono::steady_clock;
  /// Told what an operator should know, also in a sentence.
  using Tell = std::function<void(Incident, const std::string&)>;

  /// Clients come by `doors`.
  Process(std::vector<net::ListeningSocket> doors, Orders orders, Tell tell);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Readable: there may be a connection. -1: it does not run.
  int channel() const { return channel_; }

  /// The next connection, which belongs to the caller.
  std::optional<int> take();

  /// Starts it if it does not run, a second after the last start at the earliest.
  void look_after(Clock::time_point now);

 private:
  void start();
  void end();
  bool has_exited();
  void tell_of_signal(std::string_view number);

  const std::vector<net::ListeningSocket> doors_;
  const Orders orders_;
  const Tell tell_;
  int channel_ = -1;
  pid_t process_ = 0;
  Clock::time_point due_{};
};

} // namespace weir::gate
