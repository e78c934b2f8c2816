// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/frame.hpp"
#include "stage/dispatch.hpp"
#include "stage/receive.hpp"
#include "stage/snapshot.hpp"
#include "stage/worker.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::stage {

/// A whole switch by plain calls: all stages, no EAL, no threads, no clock. weir-replay, the
/// simulation, the fuzzers and the packet tests run it. An lcore with all roles does the same with
/// ports.
class InlineSwitch : private WorkerSink {
 public:
  static constexpr std::size_t kBurst = 32;

  struct Settings {
    std::uint32_t mac_entries = 8192;
    std::uint64_t mac_aging_ms = 300'000;
    Worker::Settings worker;
  };

  /// `max_frame_bytes` is by port. `sink` gets every frame back, through transmit or release.
  InlineSwitch(const std::vector<ring::RingSpec>& rings, std::vector<std::uint32_t> max_frame_bytes,
               const Settings& settings, FrameSink& sink);

  /// Takes a frame with data, length and ingress set.
  void accept(frame::Frame& frame, frame::Instant now) {
    worker_.cached_path().begin_burst();
    FlowCacheEntry* const entry = worker_.cached_path().entry_of(frame.bytes(), frame.ingress);
    if (entry == nullptr) {
      return take_stages(frame, now);
    }
    frame::Frame* const burst = &frame;
    serve({&burst, 1}, {&entry, 1}, now);
  }

  /// Takes at most kBurst frames that have come together, as an lcore does.
  void accept(std::span<frame::Frame* const> burst, frame::Instant now);

  /// Lets at most so many frames go on whose turn it is; returns how many did. Frames wait for
  /// their turn where queue().expect() said that there are many.
  unsigned serve(unsigned frames, frame::Instant now);

  Queue& queue() { return worker_.queue(); }

  /// Sends the results of reductions that helpers have made.
  void collect(frame::Instant now) { worker_.collect(now); }

  /// Acts on the timers of the rings that are due.
  void poll_timers(frame::Instant now) { worker_.poll_timers(now); }

  /// When poll_timers() is worth calling, in ns.
  std::uint64_t next_timer() const { return worker_.next_timer(); }

  /// For the sink: a frame has left.
  void count(frame::Departure departure) { counters_.count(departure); }

  /// For the sink: further copies of a flooded frame have left.
  void count_copies(std::uint64_t copies) { counters_.copies += copies; }

  /// For the sink: a frame that should leave could not.
  void count(DropReason reason) { counters_.count(reason); }

  void reset_ring(std::uint16_t ring, frame::Instant now) { worker_.reset_ring(ring, now); }

  void drain_ring(std::uint16_t ring, frame::Instant now) { worker_.drain_ring(ring, now); }

  void withdraw_ring(std::uint16_t ring, frame::Instant now);

  void set_ports_down(l2::PortSet ports, frame::Instant now) { worker_.set_ports_down(ports, now); }

  /// As ring::RingSet::with_changed.
  void change_rings(std::span<const ring::RingSpec> specs, frame::Instant now);

  /// Returns the index of the ring. Throws as ring::RingSet::with, and std::length_error when there
  /// are no places for its connections; then nothing has changed.
  std::uint16_t add_ring(const ring::RingSpec& ring);

  const ring::RingSet& rings() const { return *current_; }

  const Worker& worker() const { return worker_; }

  const l2::MacTable& stations() const { return stations_; }

  l2::MacTable& stations() { return stations_; }

  l2::Bridge& bridge() { return bridge_; }

  /// None are sent until the caller says so.
  SentProbes& probes() { return probes_; }

  const SeenProbes& seen_probes() const { return dispatch_.seen_probes(); }

  /// By dispatch; the worker has its own.
  const conn::RefusedHellos& refused_hellos() const { return dispatch_.refused_hellos(); }

  frame::Trace& trace() { return trace_; }

  Accounting accounting() const {
    return {counters_, worker_.held(), worker_.queue().lines().size()};
  }

 private:
  void serve(std::span<frame::Frame* const> burst, std::span<FlowCacheEntry* const> entries,
             frame::Instant now);
  void take_stages(frame::Frame& frame, frame::Instant now);
  void swap_rings(ring::RingSet rings);
  void to_worker(frame::Frame& frame, std::uint16_t ring_group, frame::Instant now) override;

  ring::CurrentRings current_;
  conn::ForeignSessions foreign_sessions_;
  conn::QueuePairClaims claims_;
  Worker::Settings worker_settings_;
  l2::MacTable stations_;
  l2::Bridge bridge_;
  frame::FrameCounters counters_;
  frame::Trace trace_;
  Forward forward_;
  Worker worker_;
  Receive receive_;
  SentProbes probes_;
  Dispatch dispatch_;
};

} // namespace weir::stage
