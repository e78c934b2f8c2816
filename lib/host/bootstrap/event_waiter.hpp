// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/bootstrap/stream.hpp"

#include <atomic>
#include <cstdint>

namespace weir::host {

/// In place of a descriptor: nothing tells when there is work.
inline constexpr int kNoDescriptor = -1;

/// Where threads sleep that have nothing to do, until a descriptor is readable or a bell rings. Any
/// number of threads may use it.
class EventWaiter {
 public:
  enum class Source : std::uint32_t {
    bell = 0,
    transport = 1,
    control = 2, // a connection to another rank
  };

  /// Which sources ended a sleep.
  struct Woken {
    bool by_bell = false;
    bool by_transport = false;
    bool by_control = false;
  };

  /// Throws Error when the process can open no more descriptors.
  EventWaiter();

  /// The descriptor may be closed at any time.
  void watch(int descriptor, Source source);

  /// Returns at the deadline at the latest.
  Woken sleep_until(Deadline deadline);

  /// Ends the sleeps under way; if nobody sleeps, the next one. Never blocks.
  void ring();

 private:
  bool is_rung() { return has_rung_.exchange(false); }

  Socket events_;
  Socket bell_;
  std::atomic<unsigned> sleepers_ = 0;
  std::atomic<bool> has_rung_ = false;
};

} // namespace weir::host
