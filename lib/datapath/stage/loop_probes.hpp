// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/counters.hpp"
#include "l2/port_set.hpp"
#include "wire/loop_probe.hpp"

#include <array>
#include <cstdint>

namespace weir::stage {

/// What lcores must know of the loop probes that the switch sends. Control changes it while they
/// stand still.
struct SentProbes {
  /// Of the probes that a port sent last. 0: there is none.
  struct Tokens {
    std::uint64_t newest = 0;
    std::uint64_t former = 0; // of the second before
  };

  bool are_sent = false; // otherwise a probe is a frame like any other
  std::uint64_t sender = 0;
  std::array<Tokens, l2::kMaxPorts> tokens{}; // by port
  l2::PortSet to_switches = 0;                // by which other switches' probes have come

  /// Whether this switch has sent it, and not long ago.
  bool has_sent(const wire::LoopProbe& probe) const;
};

/// The probes that one lcore has got, by the port that they came by. That lcore alone writes them,
/// and any thread may read them at any time.
struct SeenProbes {
  struct ByPort {
    frame::Count own;         // which left by another port
    frame::Count own_from;    // the port of the last one
    frame::Count others;      // other switches'
    frame::Count others_from; // the number of the last one's sender
  };

  std::array<ByPort, l2::kMaxPorts> ports;

  void add_own(std::uint16_t ingress, std::uint16_t from) {
    ports[ingress].own_from = from;
    ++ports[ingress].own;
  }

  void add_other(std::uint16_t ingress, std::uint64_t sender) {
    ports[ingress].others_from = sender;
    ++ports[ingress].others;
  }
};

} // namespace weir::stage
