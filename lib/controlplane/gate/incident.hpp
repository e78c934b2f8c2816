// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace weir::gate {

/// What an operator should know of the gate.
enum class Incident : std::uint8_t {
  connection_killed, // a signal has ended a connection's process, mostly for want of memory
  acceptor_ended,    // the process that accepts has ended
  refused,           // it does not start, or its files are none
};

} // namespace weir::gate
