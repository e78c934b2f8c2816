// SPDX-License-Identifier: BSD-3-Clause
#include "stage/snapshot.hpp"

#include "ring/sender_name.hpp"

#include <algorithm>

namespace weir::stage {
namespace {

/// Of someone, on the connection that it sends on and on the one that leads to it.
LinkLosses losses_between(const conn::ChildStatus& sends, const conn::ChildStatus& receives) {
  return {sends.recovery.naks + sends.recovery.rnr_naks,
          receives.recovery.mended + receives.recovery.resent_late};
}

/// What only a switch with one above has to tell.
void snapshot_above(RingSnapshot& snapshot, const Worker& worker, frame::Instant now) {
  const RingState& state = worker.state_of(snapshot.ring);
  snapshot.parent = worker.incarnations().status_of(snapshot.ring, state.slots.children());
  if (const auto missing = state.missing_total()) {
    snapshot.total_missing_ns = now.ns - missing->since_ns;
  }
  if (const auto* last = worker.incarnations().climbing(snapshot.ring)) {
    snapshot.climbing_ns = now.ns - last->arrived_ns;
  }
}

} // namespace

LineSnapshot snapshot_line(const FairQueue& lines, std::uint16_t line) {
  return {lines.waiting(line), lines.counters_of(line), lines.rate_of(line)};
}

LinkLosses losses_of(const RingSnapshot& ring, std::size_t child) {
  if (child != 0) {
    return losses_between(ring.children[child], ring.children[child - 1]);
  }
  return losses_between(ring.children[0], ring.parent ? *ring.parent : ring.children.back());
}

LinkLosses losses_above(const RingSnapshot& ring) {
  return losses_between(*ring.parent, ring.children.back());
}

RingSnapshot snapshot_ring(const Worker& worker, std::uint16_t ring, frame::Instant now) {
  const slot::SlotTable& slots = worker.slots_of(ring);
  const conn::Incarnations& incarnations = worker.incarnations();
  RingSnapshot snapshot{.ring = ring,
                        .incarnation = incarnations.incarnation_of(ring),
                        .counters = worker.counters_of(ring),
                        .held = slots.held(),
                        .filling = slots.filling(),
                        .slots = slots.slots(),
                        .children = {},
                        .line = snapshot_line(worker.queue().lines(), worker.ring_group_of(ring))};
  for (std::uint16_t child = 0; child < slots.children(); ++child) {
    snapshot.children.push_back(incarnations.status_of(ring, child));
    if (snapshot.incarnation && worker.is_rank({ring, child}) &&
        !worker.state_of(ring).pins[child]) {
      snapshot.unpinned.push_back(child);
    }
  }
  const auto ungranted = incarnations.ungranted_operators_of(ring);
  snapshot.ungranted.assign(ungranted.begin(), ungranted.end());
  if (!worker.state_of(ring).is_root) {
    snapshot_above(snapshot, worker, now);
  }
  if (const auto& since = incarnations.draining_since(ring)) {
    snapshot.draining_ms = now.ms() - *since;
  }
  if (const auto wait = worker.state_of(ring).wait()) {
    snapshot.waited_for = worker.state_of(ring).late_senders();
    snapshot.waiting_ns = now.ns - wait->since_ns;
    snapshot.waiting_since_ns = wait->since_ns;
  }
  return snapshot;
}

std::vector<SenderSnapshot> snapshot_senders(const Worker& worker, std::uint16_t ring) {
  const conn::Incarnations& incarnations = worker.incarnations();
  std::vector<SenderSnapshot> senders(incarnations.senders_of(ring));
  for (std::uint16_t child = 0; child < senders.size(); ++child) {
    senders[child] = {child, incarnations.status_of(ring, child),
                      incarnations.flow_of({ring, child})};
  }
  return senders;
}

namespace {

bool is_missing_in(std::span<const slot::StuckSlot> slots, std::uint16_t child) {
  return std::ranges::any_of(slots, [child](const slot::StuckSlot& slot) {
    return std::ranges::count(slot.missing, child) != 0;
  });
}

bool has_hello(const SenderSnapshot& sender) {
  return sender.status.connected || sender.status.waiting_hellos != 0;
}

} // namespace

void keep_waited_for(std::vector<SenderSnapshot>& senders, std::span<const slot::StuckSlot> slots) {
  const bool hellos_wait = std::ranges::any_of(
      senders, [](const SenderSnapshot& sender) { return sender.status.waiting_hellos != 0; });
  std::erase_if(senders, [&](const SenderSnapshot& sender) {
    return !is_missing_in(slots, sender.child) && (!hellos_wait || has_hello(sender));
  });
}

namespace {

/// A dead connection may be of a withdrawn ring whose index another one has by now.
const ring::Ring* find_ring_of(const conn::Connection& connection, const ring::RingSet& set) {
  const bool was_admitted = connection.state == conn::ConnectionState::live ||
                            connection.state == conn::ConnectionState::dead;
  if (!was_admitted) {
    return nullptr;
  }
  const ring::Ring& ring = set.rings()[connection.ring];
  const bool is_its_ring = connection.child < ring.senders() &&
                           set.pair_of({connection.ring, connection.child}) == connection.pair;
  return is_its_ring ? &ring : nullptr;
}

ConnectionSnapshot snapshot_connection(const conn::Connection& connection, const ring::RingSet& set,
                                       frame::Instant now) {
  ConnectionSnapshot snapshot{.connection = connection,
                              .ring_id = {},
                              .sender = {},
                              .idle_ms = now.ms() - connection.last_seen};
  if (const ring::Ring* ring = find_ring_of(connection, set)) {
    snapshot.ring_id = ring->spec().id;
    snapshot.sender = ring::name_of(ring->spec(), connection.child);
  }
  return snapshot;
}

} // namespace

void snapshot_connections(const Worker& worker, const ring::RingSet& set, conn::PlaceRange range,
                          frame::Instant now, std::vector<ConnectionSnapshot>& snapshot) {
  worker.incarnations().connections().for_each(range, [&](const conn::Connection& connection) {
    snapshot.push_back(snapshot_connection(connection, set, now));
  });
}

} // namespace weir::stage
