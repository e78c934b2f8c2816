// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "stage/pipeline.hpp"
#include "stage/worker_state.hpp"

#include <cassert>
#include <memory>
#include <memory_resource>
#include <utility>
#include <vector>

namespace weir::stage {

/// A ring's state in a worker. It takes time to make and to free; worker and lcores need not wait
/// for that.
struct WorkerRing {
  WorkerRing(const ring::Ring& ring, std::pmr::memory_resource* memory)
      : state(ring, memory), connections(ring) {}

  WorkerRing(RingState&& state, conn::RingConnections&& connections)
      : state(std::move(state)), connections(std::move(connections)) {}

  RingState state;
  conn::RingConnections connections;
};

/// The stages from queue to emit, for the rings that one worker owns. All state of these rings
/// is here, used by one lcore. Every packet of a ring's connections passes through here in order,
/// of any kind (protocol I7).
class Worker {
 public:
  using Settings = WorkerSettings;

  Worker(const ring::CurrentRings& current, std::vector<std::uint16_t> rings,
         const Settings& settings, l2::Bridge& bridge, Forward& forward,
         frame::FrameCounters& counters);
  Worker(const Worker&) = delete; // the stages refer to one another
  Worker& operator=(const Worker&) = delete;
  ~Worker() = default;

  /// See Queue::accept.
  void accept(frame::Frame& frame, std::uint16_t ring_group, frame::Instant now) {
    pipeline_.queue.accept(frame, ring_group, now);
  }

  /// Said before the first frame of a burst that has been received.
  void begin_burst(frame::Instant now) {
    pipeline_.cached_path.begin_burst();
    leave_moved(now);
  }

  /// See Queue::accept_for_region.
  void accept_for_region(frame::Frame& frame, frame::Instant now) {
    pipeline_.queue.accept_for_region(frame, now);
  }

  /// See Region::adopt.
  void adopt_region(std::unique_ptr<region::Region> made, std::uint16_t tenant,
                    frame::Instant now) {
    pipeline_.region.adopt(std::move(made), tenant, now);
  }

  /// See Region::withdraw.
  void withdraw_region(region::Region& region, frame::Instant now) {
    pipeline_.region.withdraw(region, now);
  }

  region::RegionTable& regions() { return pipeline_.region.table(); }

  const region::RegionTable& regions() const { return pipeline_.region.table(); }

  Queue& queue() { return pipeline_.queue; }

  CachedPath& cached_path() { return pipeline_.cached_path; }

  const CachedPath& cached_path() const { return pipeline_.cached_path; }

  const Queue& queue() const { return pipeline_.queue; }

  /// See Emit::collect.
  unsigned collect(frame::Instant now) { return pipeline_.emit.collect(now); }

  /// See Timers::poll.
  void poll_timers(frame::Instant now) {
    leave_moved(now);
    pipeline_.timers.poll(now);
  }

  /// When poll_timers() is worth calling, in ns. Before that it does nothing.
  std::uint64_t next_timer() const { return state_.schedule.next(); }

  /// The current set has one ring more. To be called before adopt(), and where another worker
  /// adopts it.
  void follow_set();

  /// Takes one ring more, which the current set has by now. As conn::Incarnations::adopt.
  void adopt(std::uint16_t ring, WorkerRing room);

  /// The current set says something else of this ring's patience, keep-alive or members' ports
  /// (ring::RingSet::with_changed).
  void change_ring(std::uint16_t ring, frame::Instant now);

  /// These ports have no link.
  void set_ports_down(l2::PortSet ports, frame::Instant now);

  /// As conn::Incarnations::set_aging.
  void set_aging(std::uint64_t milliseconds) {
    state_.incarnations.set_aging(milliseconds);
    state_.classifier.set_aging(milliseconds);
  }

  /// As Classify::reset_ring.
  void reset_ring(std::uint16_t ring, frame::Instant now) {
    pipeline_.classify.reset_ring(ring, now);
  }

  /// As conn::Incarnations::drain.
  void drain_ring(std::uint16_t ring, frame::Instant now) {
    pipeline_.classify.drain_ring(ring, now);
  }

  /// Hands out the state of a ring that leaves the set before the next packet. Call drop_some()
  /// until it has no frames.
  WorkerRing withdraw_ring(std::uint16_t ring, frame::Instant now);

  /// See Aggregate::drop_some.
  bool drop_some(WorkerRing& withdrawn, std::size_t slots, frame::Instant now) {
    return pipeline_.aggregate.drop_some(withdrawn.state, slots, now);
  }

  const std::vector<std::uint16_t>& rings() const { return state_.owned; }

  bool is_rank(const ring::RingChild& sender) const {
    return state_.current->rings()[sender.ring].is_rank(sender.child);
  }

  std::uint16_t ring_group_of(std::uint16_t ring) const {
    return state_.current->ring_group_of(ring);
  }

  const RingState& state_of(std::uint16_t ring) const {
    assert(ring < state_.rings.size() && state_.rings[ring]);
    return *state_.rings[ring];
  }

  const frame::RingCounters& counters_of(std::uint16_t ring) const {
    return state_.rings[ring]->counters;
  }

  const slot::SlotTable& slots_of(std::uint16_t ring) const { return state_.rings[ring]->slots; }

  const conn::Incarnations& incarnations() const { return state_.incarnations; }

  const conn::RefusedHellos& refused_hellos() const { return state_.refused; }

  /// Frames in slots and of regions, and waiting hellos.
  std::uint64_t held() const;

 private:
  /// What came with the burst, or later, on a connection that a ring of another worker has admitted
  /// may be for that ring. What came before was for the ring here.
  void leave_moved(frame::Instant now) {
    if (state_.incarnations.has_moved()) [[unlikely]] {
      state_.incarnations.leave_moved(now.ms());
    }
  }

  void follow_rings();
  std::size_t ring_groups() const;

  WorkerState state_;
  Pipeline pipeline_{state_};
};

} // namespace weir::stage
