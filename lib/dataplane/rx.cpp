// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/rx.hpp"

#include "wire/parse.hpp"

namespace weir::dataplane {

Rx::Rx(const conn::RingDirectory& directory, l2::Bridge& bridge, Forwarder& forwarder,
       WorkerSink& workers, FrameCounters& counters)
    : directory_(directory), bridge_(bridge), forwarder_(forwarder), workers_(workers),
      counters_(counters) {}

void Rx::accept(wire::Frame& frame, Instant now) {
  ++counters_.received;
  bridge_.learn(frame.bytes(), frame.ingress, now.ms);
  frame.packet = wire::parse(frame.bytes());
  const bool may_carry_ring_data = frame.packet.parsed == wire::Parsed::message ||
                                   frame.packet.parsed == wire::Parsed::malformed;
  frame.pair = may_carry_ring_data
                   ? directory_.pair_of(frame.packet.source, frame.packet.destination)
                   : std::uint16_t{0};
  if (frame.pair == 0) {
    return forwarder_.send(frame, wire::Departure::forwarded, now);
  }
  workers_.to_worker(frame, directory_.group_of_pair(frame.pair), now);
}

} // namespace weir::dataplane
