// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/fork_watch.hpp"
#include "host/base/stream.hpp"
#include "host/rendezvous/meeting_handle.hpp"

#include <mutex>
#include <string>

namespace weir::host {

/// Where rank 0 of a group to come listens before the other ranks know it. Callers wait in the
/// kernel's queue until the group is formed. Any thread may use it.
class Listener {
 public:
  /// At HOST:PORT, whose port may be 0; empty: on every interface, at a free port. `preferred_ip`
  /// is told first, if it is one of the kernel's. Draws a secret. Throws Error.
  Listener(const std::string& address, const std::string& preferred_ip);

  const MeetingHandle& handle() const { return handle_; }

  std::string handle_text() const { return {handle_.begin(), handle_.end()}; }

  /// For a group, once. Throws std::invalid_argument when a group has it already, and Error in a
  /// child made by fork.
  Socket take();

 private:
  const Birthplace birthplace_;
  std::mutex mutex_;
  Socket socket_; // guarded by the mutex; empty: a group has it
  MeetingHandle handle_{};
};

} // namespace weir::host
