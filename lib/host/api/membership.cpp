// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/membership.hpp"

#include <exception>

namespace weir::host {

bool Membership::progress(std::chrono::microseconds timeout) {
  const bool moved = engine->step();
  if (!moved && timeout.count() != 0) {
    transport->wait(timeout);
  }
  return moved;
}

void Membership::leave() {
  try {
    control->leave();
    while (!control->may_close()) {
      progress(kShortWait);
    }
  } catch (const std::exception&) { // our calls are all done, so the error is another rank's
  }
}

GroupStatistics Membership::statistics() const {
  const TransportStatistics counted = transport->statistics();
  return {.messages_sent = engine->messages_sent(),
          .results_received = engine->results_received(),
          .retransmitted_packets = counted.retransmitted_packets,
          .ack_timeouts = counted.ack_timeouts,
          .frames_lost_on_purpose = counted.frames_lost_on_purpose};
}

} // namespace weir::host
