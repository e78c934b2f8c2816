// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/stream.hpp"

#include <cstdint>
#include <poll.h>
#include <span>

namespace weir::host {

/// In place of a descriptor: nothing tells when there is work.
inline constexpr int kNoDescriptor = -1;

/// As poll(2). Deadline::max(): for ever.
void poll_until(std::span<pollfd> entries, Deadline deadline);

/// Ends the sleep of the one thread that sleeps by it. If it does not sleep, its next sleep is over
/// at once.
class Bell {
 public:
  /// Throws Error when the process can open no more descriptors.
  Bell();

  /// From any thread. Never blocks.
  void ring();

  /// For the thread that sleeps, which watches the descriptor.
  void silence();

  int descriptor() const { return event_.get(); }

 private:
  Socket event_;
};

/// Where threads sleep that have nothing to do, until a descriptor is readable or their bell rings.
/// Any number of threads may use it.
class EventWaiter {
 public:
  enum class Source : std::uint32_t {
    transport = 0,
    control = 1, // a connection to another rank
    callers = 2, // a listener
  };

  /// Throws Error when the process can open no more descriptors.
  EventWaiter();

  /// The descriptor may be closed at any time.
  void watch(int descriptor, Source source);
  void control(int operation, int descriptor, Source source);

  /// Whoever comes to the listener is closed by the next thread that sleeps, so that its queue
  /// never fills. It outlives this object.
  void turn_callers_away(const Socket& listener);

  /// Returns at the deadline at the latest. True if a connection to another rank is readable.
  bool sleep_until(Deadline deadline, Bell& bell);

  /// Readable when a sleep would be over, for a thread that sleeps elsewhere. It calls hear() then.
  int descriptor() const { return events_.get(); }

  /// Turns callers away. True if a connection to another rank is readable.
  bool hear();

 private:
  Socket events_;
  const Socket* listener_ = nullptr;
};

} // namespace weir::host
