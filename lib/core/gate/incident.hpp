// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string_view>

namespace weir::gate {

/// What an operator should know of the gate.
enum class Incident : std::uint8_t {
  connection_killed, // a signal has ended a connection's process, mostly for want of memory
  acceptor_ended,    // the process that accepts has ended
  refused,           // it does not start, or its files are none
};

/// As logs have it.
constexpr std::string_view word_of(Incident incident) {
  switch (incident) {
  case Incident::connection_killed:
    return "gate_killed";
  case Incident::acceptor_ended:
    return "gate_ended";
  case Incident::refused:
    break;
  }
  return "gate";
}

} // namespace weir::gate
