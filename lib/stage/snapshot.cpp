// SPDX-License-Identifier: BSD-3-Clause
#include "stage/snapshot.hpp"

namespace weir::stage {

RingSnapshot snapshot_ring(const Worker& worker, std::uint16_t ring, frame::Instant now) {
  const slot::SlotTable& slots = worker.slots_of(ring);
  const conn::Classifier& classifier = worker.classifier();
  RingSnapshot snapshot{.ring = ring,
                        .incarnation = classifier.incarnation_of(ring),
                        .counters = worker.counters_of(ring),
                        .held = slots.held(),
                        .filling = slots.filling(),
                        .slots = slots.slots(),
                        .children = {}};
  for (std::uint16_t child = 0; child < slots.children(); ++child) {
    snapshot.children.push_back(classifier.status_of(ring, child));
  }
  if (const auto stall = worker.state_of(ring).stall()) {
    snapshot.waiting_ns = now.ns - stall->since_ns;
    for (std::uint16_t child = 0; child < slots.children(); ++child) {
      if (!slots.has(stall->slot, child)) {
        snapshot.waited_for.push_back(child);
      }
    }
  }
  return snapshot;
}

void snapshot_connections(const Worker& worker, conn::PlaceRange range, frame::Instant now,
                          std::vector<ConnectionSnapshot>& snapshot) {
  worker.classifier().connections().for_each(range, [&](const conn::Connection& connection) {
    snapshot.push_back({connection, now.ms - connection.last_seen});
  });
}

} // namespace weir::stage
