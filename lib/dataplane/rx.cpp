// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/rx.hpp"

#include "wire/parse.hpp"

namespace weir::dataplane {

Rx::Rx(const conn::RingDirectory& directory, l2::Bridge& bridge, Forwarder& forwarder,
       WorkerSink& workers, FrameCounters& counters)
    : directory_(directory), bridge_(bridge), forwarder_(forwarder), workers_(workers),
      counters_(counters) {}

void Rx::look_at(wire::Frame& frame, Instant now) {
  ++counters_.received;
  bridge_.learn(frame.bytes(), frame.ingress, now.ms);
  frame.packet = wire::parse(frame.bytes());
  frame.pair = frame.packet.parsed == wire::Parsed::other
                   ? std::uint16_t{0}
                   : directory_.pair_of(frame.packet.source, frame.packet.destination);
}

void Rx::pass_on(wire::Frame& frame, Instant now) {
  if (frame.pair == 0) {
    return forwarder_.send(frame, wire::Departure::forwarded, now);
  }
  workers_.to_worker(frame, directory_.group_of_pair(frame.pair), now);
}

} // namespace weir::dataplane
