// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "event_queue.hpp"
#include "network/dice.hpp"
#include "packet.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace weir::fabric {

using network::Dice;

enum class Tracing : std::uint8_t { off, on };

/// What all parts of a run share: time, dice, events and packets.
struct World {
  World(std::uint64_t seed, Tracing with_trace) : dice(seed), tracing(with_trace) {}

  Time now = 0;
  Dice dice;
  EventQueue events;
  PacketPool packets;
  const Tracing tracing;

  /// Each value once.
  std::uint32_t draw_nonce() { return ++nonces_ * 0x9e3779b1u; }

  /// Prints a line of the trace.
  template <typename... Arguments>
  void tell(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    if (tracing == Tracing::on) {
      fmt::print("{:>10.3f} us  {}\n", static_cast<double>(now) / 1000,
                 fmt::format(format, std::forward<Arguments>(arguments)...));
    }
  }

 private:
  std::uint32_t nonces_ = 0;
};

} // namespace weir::fabric
