// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ethdev/memif_reader.hpp"
#include "frame/counters.hpp"
#include "frame/frame.hpp"
#include "frame/trace.hpp"
#include "lcore/clock.hpp"
#include "lcore/handoffs.hpp"
#include "lcore/idle.hpp"
#include "lcore/round_counters.hpp"
#include "lcore/rx_burst.hpp"
#include "lcore/shared.hpp"
#include "lcore/transmit.hpp"
#include "lcore/tx_port.hpp"
#include "stage/dispatch.hpp"
#include "stage/forward.hpp"
#include "stage/worker.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace weir::lcore {

/// One core's loop over the stages of its roles. With all roles on one lcore (run-to-completion)
/// the stages call one another. With several lcores they are connected by rte_rings (Handoffs).
///
/// Only the lcore's own thread uses this object while it runs. Other threads read or change it
/// while the lcore is quiescent; port counters they may copy at any time.
class Lcore : private stage::WorkerSink, private stage::WorkerPeers {
 public:
  using Shared = lcore::Shared;

  /// `node` is its NUMA node. The queues that it reads are in memory of this node.
  Lcore(unsigned id, Idle idle, const Shared& shared, int node = SOCKET_ID_ANY);
  ~Lcore() override = default;
  Lcore(const Lcore&) = delete;
  Lcore& operator=(const Lcore&) = delete;

  // Setup, before run(), or while all lcores are quiescent.
  void add_rx_queue(const RxQueue& queue) { rx_queues_.push_back(queue); }

  /// Receives nothing more from the port.
  void remove_rx_queues(std::uint16_t port);

  void add_tx_port(std::uint16_t port, std::unique_ptr<TxPort> queues) {
    transmitter_.add_port(port, std::move(queues));
  }

  void add_tx_port(std::uint16_t port, const TxQueues& queues) {
    add_tx_port(port, std::make_unique<TxPort>(queues));
  }

  /// Drops what waits for the port if this lcore transmits there, as DropReason::port_closed, and
  /// what comes for it later.
  void close_tx_port(std::uint16_t port) { transmitter_.close_port(port); }

  /// Of this port's frames; as Forward.
  void set_frame_limit(std::uint16_t port, std::optional<std::uint32_t> bytes);
  /// The helpers are those given by add_helper().
  void make_worker(std::vector<std::uint16_t> rings, stage::Worker::Settings settings);

  /// The other lcore also makes reductions for this lcore's worker, when it has time.
  void add_helper(Lcore& helper) { handoffs_.add_helper(helper.handoffs_); }

  /// Makes the hand-off ring to `worker`, before it is needed.
  void reach(Lcore& worker) { handoffs_.reach_worker(worker.handoffs_); }

  /// As Handoffs::route_regions; `owner` may be this lcore.
  void route_regions(Lcore& owner) { handoffs_.route_regions(owner.handoffs_); }

  /// As Handoffs::route_pair; `worker` may be this lcore.
  void route_pair(std::uint16_t pair, Lcore& worker, PairWorkers workers) {
    handoffs_.route_pair(pair, worker.handoffs_, workers);
  }

  /// As Handoffs::route_ring; `worker` may be this lcore.
  void route_ring(std::uint16_t ring, Lcore& worker, conn::ConnectionOwners::Worker number) {
    handoffs_.route_ring(ring, worker.handoffs_, number);
  }

  /// Makes the hand-off rings to `transmitter`, before they are needed.
  void reach_transmitter(Lcore& transmitter) { handoffs_.reach_transmitter(transmitter.handoffs_); }

  /// Frames for this port go to `transmitter`, which may be this lcore.
  void route_port(std::uint16_t port, Lcore& transmitter);

  /// Runs until stop().
  void run();

  /// One round, for callers that drive the lcore themselves: polls every queue and hand-off ring
  /// once. Returns the number of frames it moved.
  unsigned round(frame::Instant now);

  void wait_until_running() const;

  void stop() { stopping_.store(true, std::memory_order_relaxed); }

  void wait_until_stopped() const;

  /// Stops receiving from the ports. The other stages go on.
  void stop_receiving() { is_receiving_ = false; }

  // For one thread at a time that wants to read several lcores at once. First all lcores stay
  // awake, so that none sleeps while others are quiescent for it. Then all quiesce, between two
  // rounds. Each call returns at once. Until resume(), the caller may read and change anything.
  void stay_awake() { request_.store(Request::stay_awake, std::memory_order_release); }

  bool is_awake() const { return has_come_to(State::awake); }

  void quiesce() { request_.store(Request::quiesce, std::memory_order_release); }

  bool is_quiescent() const { return has_come_to(State::quiescent); }

  void resume() { request_.store(Request::run, std::memory_order_release); }

  unsigned id() const { return id_; }

  // Only while the lcore is quiescent, or after run() has returned.

  /// Of queue pairs that are not the rings'.
  void set_aging(std::uint64_t milliseconds);

  /// A frame of the switch's own leaves by the port. False when there is no mbuf for it.
  bool originate(std::span<const std::uint8_t> bytes, std::uint16_t port, frame::Instant now);

  const frame::FrameCounters& counters() const { return counters_; }

  const RoundCounters& rounds() const { return rounds_; }

  /// At any time.
  const frame::PortCounters& port_counters(std::uint16_t port) const { return ports_[port]; }

  /// At any time.
  const stage::SeenProbes& seen_probes() const { return rx_burst_.seen_probes(); }

  /// By dispatch; the worker has its own.
  const conn::RefusedHellos& refused_hellos() const { return rx_burst_.refused_hellos(); }

  stage::Worker* worker() { return worker_ ? &*worker_ : nullptr; }

  frame::Trace& trace() { return trace_; }

  /// Frames handed to this lcore by others, and frames that wait for its worker or its ports. May
  /// be negative on one lcore; the sum over all lcores is right.
  std::uint64_t queued() const;
  /// Drops what waits in hand-off rings, lines and backlogs, each under the reason of the place
  /// where it waited. Called at the end.
  void discard_queued();

  bool receives() const { return !rx_queues_.empty(); }

  bool transmits() const { return transmitter_.has_open_port(); }

 private:
  enum class Request : std::uint8_t { run, stay_awake, quiesce };
  enum class State : std::uint8_t { running, awake, quiescent };

  // Bursts from one place in a round, while frames wait for the worker. More than it serves, so
  // that what a ring sends too much is dropped from its own line and not where all rings' frames
  // arrive; not much more, so that time is left to serve.
  static constexpr unsigned kMostBursts = 4;
  static constexpr std::uint64_t kSpinsBeforeYield = 1000;
  static constexpr std::uint64_t kRoundsPerPoolCheck = 64; // rounds between checks of the mempool

  /// True for an lcore that does not run, whatever the state asked for.
  bool has_come_to(State state) const {
    return state_.load(std::memory_order_acquire) == state ||
           !running_.load(std::memory_order_acquire);
  }

  void to_worker(frame::Frame& frame, std::uint16_t ring_group, frame::Instant now) override;
  void to_region(frame::Frame& frame, frame::Instant now) override;
  void to_worker_of(std::uint16_t ring, frame::Frame& frame, frame::Instant now) override;

  template <typename Take>
  unsigned take_bursts(Take&& take);
  unsigned receive_all(frame::Instant now);
  void check_mempool();
  unsigned serve(frame::Instant now);
  unsigned take_worker_handoffs(frame::Instant now);
  unsigned take_worker_handoff(std::size_t inbox, frame::Instant now);
  void flush_handoffs(frame::Instant now);
  void drop_refused(rte_mbuf* mbuf, frame::Instant now);
  void rest_after(unsigned work);
  void wake();
  void wait_for_resume(const Clock& clock);

  unsigned id_;
  Idle idle_;
  const Shared& shared_;
  frame::FrameCounters counters_;
  RoundCounters rounds_;
  frame::Instant now_; // of the round
  PortCounters ports_{};
  frame::Trace trace_;

  // The parts refer to one another. None uses another before a frame comes.
  Handoffs handoffs_;
  stage::Forward forward_;
  Transmitter transmitter_;
  std::optional<stage::Worker> worker_;
  RxBurst rx_burst_;

  std::vector<RxQueue> rx_queues_;
  bool is_receiving_ = true;
  ethdev::MemifReader reader_;
  unsigned empty_rounds_ = 0;
  std::uint64_t switches_when_awake_ = 0;
  std::atomic<bool> stopping_{false};          // written by control
  std::atomic<bool> running_{false};           // written by this lcore
  std::atomic<Request> request_{Request::run}; // written by control
  std::atomic<State> state_{State::running};   // written by this lcore
};

} // namespace weir::lcore
