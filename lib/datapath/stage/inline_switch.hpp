// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/frame.hpp"
#include "stage/dispatch.hpp"
#include "stage/receive.hpp"
#include "stage/snapshot.hpp"
#include "stage/worker.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace weir::stage {

/// A whole switch by plain calls: all stages, no EAL, no threads, no clock. weir-replay, the
/// simulation, the fuzzers and the packet tests run it. An lcore with all roles does the same with
/// ports. With several workers it stands for as many lcores: each receives by some of the ports,
/// and has some of the rings.
class InlineSwitch : private WorkerSink, private WorkerPeers {
 public:
  static constexpr std::size_t kBurst = 32;

  /// When a frame that one worker's lcore has received, and another worker has, is taken over.
  enum class Handover : std::uint8_t {
    at_once,
    when_told, // by take_over()
  };

  struct Settings {
    std::uint32_t mac_entries = 8192;
    std::uint64_t mac_aging_ms = 300'000;
    Worker::Settings worker;
    std::uint16_t workers = 1;
    std::optional<region::Address> regions; // the first worker's; none: there are none
    Handover handover = Handover::at_once;
  };

  /// `max_frame_bytes` is by port. `sink` gets every frame back, through transmit or release.
  InlineSwitch(const std::vector<ring::RingSpec>& rings, std::vector<std::uint32_t> max_frame_bytes,
               const Settings& settings, FrameSink& sink);

  /// Takes a frame with data, length and ingress set. Only with one worker.
  void accept(frame::Frame& frame, frame::Instant now) {
    worker_.cached_path().begin_burst();
    FlowCacheEntry* const entry = worker_.cached_path().entry_of(frame.bytes(), frame.ingress);
    if (entry == nullptr) {
      return take_stages(frame, now);
    }
    frame::Frame* const burst = &frame;
    serve({&burst, 1}, {&entry, 1}, now);
  }

  /// The same with any number of workers.
  void receive(frame::Frame& frame, frame::Instant now);

  /// Takes at most kBurst frames that have come together, as an lcore does. Only with one worker.
  void accept(std::span<frame::Frame* const> burst, frame::Instant now);

  /// The worker that has the place `inbox` takes over one frame that waits there. False when none
  /// does. In a place all frames come from one lcore.
  bool take_over(std::size_t inbox, frame::Instant now);

  /// The frame that would be taken over next there; nullptr: none waits.
  const frame::Frame* waits_in(std::size_t inbox) const {
    return inboxes_[inbox].empty() ? nullptr : inboxes_[inbox].front();
  }

  /// Places where frames wait to be taken over.
  std::size_t inboxes() const { return inboxes_.size(); }

  /// All frames that wait there are taken over.
  void take_all_over(frame::Instant now);

  /// Lets at most so many frames go on whose turn it is; returns how many did. Frames wait for
  /// their turn where queue().expect() said that there are many.
  unsigned serve(unsigned frames, frame::Instant now);

  Queue& queue() { return worker_.queue(); }

  /// Sends the results of reductions that helpers have made.
  void collect(frame::Instant now) {
    for_each_worker([now](Worker& worker) { worker.collect(now); });
  }

  /// Acts on the timers of the rings that are due.
  void poll_timers(frame::Instant now) {
    for_each_worker([now](Worker& worker) { worker.poll_timers(now); });
  }

  /// When poll_timers() is worth calling, in ns.
  std::uint64_t next_timer() const;

  /// For the sink: a frame has left.
  void count(frame::Departure departure) { counters_.count(departure); }

  /// For the sink: further copies of a flooded frame have left.
  void count_copies(std::uint64_t copies) { counters_.copies += copies; }

  /// For the sink: a frame that should leave could not.
  void count(DropReason reason) { counters_.count(reason); }

  void reset_ring(std::uint16_t ring, frame::Instant now) { worker_at(ring).reset_ring(ring, now); }

  void drain_ring(std::uint16_t ring, frame::Instant now) { worker_at(ring).drain_ring(ring, now); }

  void withdraw_ring(std::uint16_t ring, frame::Instant now);

  void set_ports_down(l2::PortSet ports, frame::Instant now) {
    for_each_worker([&](Worker& worker) { worker.set_ports_down(ports, now); });
  }

  /// As ring::RingSet::with_changed.
  void change_rings(std::span<const ring::RingSpec> specs, frame::Instant now);

  /// Returns the index of the ring. Throws as ring::RingSet::with, and std::length_error when there
  /// are no places for its connections; then nothing has changed.
  std::uint16_t add_ring(const ring::RingSpec& ring);

  const ring::RingSet& rings() const { return *current_; }

  /// The first worker.
  const Worker& worker() const { return worker_; }

  /// The one that has the ring.
  const Worker& worker_of(std::uint16_t ring) const {
    return const_cast<InlineSwitch*>(this)->worker_at(ring);
  }

  /// Whether there is such a ring, and it is not withdrawn.
  bool has_ring(std::uint16_t ring) const {
    return ring < worker_of_ring_.size() && worker_of(ring).incarnations().has(ring);
  }

  region::RegionTable& regions() { return worker_.regions(); }

  /// As Worker::adopt_region.
  region::Region& add_region(const region::RegionSpec& spec, const region::RegionBirth& birth,
                             std::uint16_t tenant, frame::Instant now);

  const l2::MacTable& stations() const { return stations_; }

  l2::MacTable& stations() { return stations_; }

  l2::Bridge& bridge() { return bridge_; }

  /// None are sent until the caller says so.
  SentProbes& probes() { return probes_; }

  const SeenProbes& seen_probes() const { return dispatch_.seen_probes(); }

  /// By dispatch; the worker has its own.
  const conn::RefusedHellos& refused_hellos() const { return dispatch_.refused_hellos(); }

  frame::Trace& trace() { return trace_; }

  Accounting accounting() const { return {counters_, held(), queued()}; }

 private:
  void accept_on(Worker& worker, frame::Frame& frame, frame::Instant now);

  /// From dispatch to one of several workers.
  class ToTeam : public WorkerSink {
   public:
    explicit ToTeam(InlineSwitch& team) : team_(team) {}

    void to_worker(frame::Frame& frame, std::uint16_t ring_group, frame::Instant now) override {
      team_.to_one_of_several(frame, ring_group, now);
    }

    void to_region(frame::Frame& frame, frame::Instant now) override {
      team_.to_region(frame, now);
    }

   private:
    InlineSwitch& team_;
  };

  template <typename Act>
  void for_each_worker(Act&& act) {
    act(worker_);
    for (const auto& worker : others_) {
      act(*worker);
    }
  }

  std::uint16_t workers() const { return static_cast<std::uint16_t>(1 + others_.size()); }

  Worker& numbered(std::uint16_t number) { return number == 0 ? worker_ : *others_[number - 1u]; }

  Worker& worker_at(std::uint16_t ring) { return numbered(worker_of_ring_[ring]); }

  void make_others(const Settings& settings);
  Worker::Settings common_settings(std::size_t ports, const Settings& settings);
  void assign(std::uint16_t ring, std::uint16_t worker);
  std::uint16_t worker_for(const frame::Frame& frame) const;
  void hand_over(frame::Frame& frame, std::uint16_t to);
  std::uint64_t held() const;
  std::uint64_t queued() const;
  void serve(std::span<frame::Frame* const> burst, std::span<FlowCacheEntry* const> entries,
             frame::Instant now);
  void take_stages(frame::Frame& frame, frame::Instant now);
  void swap_rings(ring::RingSet rings);
  void to_worker(frame::Frame& frame, std::uint16_t ring_group, frame::Instant now) override;
  void to_region(frame::Frame& frame, frame::Instant now) override;
  void to_one_of_several(frame::Frame& frame, std::uint16_t ring_group, frame::Instant now);
  void to_worker_of(std::uint16_t ring, frame::Frame& frame, frame::Instant now) override;

  ring::CurrentRings current_;
  conn::ForeignSessions foreign_sessions_;
  conn::QueuePairClaims claims_;
  std::vector<std::uint16_t> worker_of_ring_;            // by index, also those of withdrawn rings
  std::vector<std::uint16_t> worker_of_pair_;            // the first one; by number, from 1 on
  std::unique_ptr<conn::ConnectionOwners> owners_;       // of several workers
  std::unique_ptr<conn::PortBindings> ports_of_members_; // likewise
  Worker::Settings worker_settings_;
  l2::MacTable stations_;
  l2::Bridge bridge_;
  frame::FrameCounters counters_;
  frame::Trace trace_;
  Forward forward_;
  Worker worker_;                               // the first one
  std::vector<std::unique_ptr<Worker>> others_; // of them
  std::uint16_t receiving_ = 0;                 // the worker whose lcore has the frame
  std::vector<std::deque<frame::Frame*>>
      inboxes_; // by the worker that has it, and the receiving one
  std::uint16_t rings_added_ = 0;
  std::optional<region::Address> regions_;
  ToTeam to_team_{*this};
  Handover handover_;
  Receive receive_;
  SentProbes probes_;
  Dispatch dispatch_;
};

} // namespace weir::stage
