// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ethdev/memif_reader.hpp"
#include "frame/frame.hpp"
#include "lcore/burst.hpp"
#include "lcore/clock.hpp"
#include "lcore/handoff.hpp"
#include "lcore/idle.hpp"
#include "lcore/outbox.hpp"
#include "lcore/transmit.hpp"
#include "ring/current_rings.hpp"
#include "stage/dispatch.hpp"
#include "stage/forward.hpp"
#include "stage/l2_fast_path.hpp"
#include "stage/receive.hpp"
#include "stage/worker.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace weir::lcore {

/// A device's receive queue, and the switch's index of its port.
struct RxQueue {
  std::uint16_t port = 0;
  std::uint16_t device = 0;
  std::uint16_t queue = 0;
};

/// A frame for the lcore that transmits on its port.
struct TxRequest {
  rte_mbuf* mbuf = nullptr;
  std::uint16_t port = 0;
  frame::Departure departure{};
  frame::TrafficClass traffic{};
  std::uint32_t bytes = 0; // of the frame: the mbuf may be far away
};

using TxHandoff = Handoff<TxRequest>;
using WorkerHandoff = Handoff<rte_mbuf*>;
using ReductionHandoff = Handoff<slot::Reduction*>;

/// Entries of a hand-off ring. There are rings for frames to a worker, for frames to transmit in
/// each traffic class (so that other traffic takes no place from results), and for reductions.
inline constexpr unsigned kHandoffEntries = 4096;
inline constexpr std::array<unsigned, frame::kTrafficClasses> kTxHandoffEntries{4096, 2048};

/// One stop of an lcore for a question.
struct Stop {
  std::uint64_t ns = 0;
  bool kept_cpu = false; // it did not lose the CPU since it stayed awake, except when it yielded
};

/// How many rounds there were, and how full.
struct RoundCounters {
  std::uint64_t rounds = 0;
  std::uint64_t idle_rounds = 0;
  std::uint64_t reductions_for_others = 0; // slots reduced for other lcores' workers
  std::uint64_t handed_over = 0;           // frames for other lcores' workers
  std::uint64_t starved_rounds = 0;        // of the rounds that checked: the mempool was empty
  frame::Histogram rx_burst;               // packets in each receive burst that is not empty
  frame::Histogram quiescent_ns;           // length of each stop, time without the CPU included
  Stop last_stop;                          // the last one before the stop in which this is read
};

/// One core's loop over the stages of its roles. With all roles on one lcore (run-to-completion)
/// the stages call one another. With several lcores they are connected by rte_rings.
///
/// Only the lcore's own thread uses this object while it runs. Other threads read or change it
/// while the lcore is stopped; port counters they may copy at any time.
class Lcore : private stage::FrameSink, private stage::WorkerSink, private slot::ReductionHelpers {
 public:
  /// What all lcores share: read-only between two swaps of the rings, or, for the stations, safe to
  /// share.
  struct Shared {
    const ring::CurrentRings& rings;
    l2::Bridge& bridge;
    std::vector<std::uint32_t> max_frame_bytes; // by port
    conn::MagicRule::Settings magic_rule;
    rte_mempool* pool = nullptr; // the ports' mempool; nullptr: do not check whether it is empty
    std::vector<wire::EtherType> outer_tags; // by port; those that it lacks: 802.1Q
  };

  /// `node` is its NUMA node. The queues that it reads are in memory of this node.
  Lcore(unsigned id, Idle idle, const Shared& shared, int node = SOCKET_ID_ANY);
  ~Lcore() override = default;
  Lcore(const Lcore&) = delete;
  Lcore& operator=(const Lcore&) = delete;

  // Setup, before run(), or while all lcores are stopped.
  void add_rx_queue(const RxQueue& queue) { rx_queues_.push_back(queue); }

  /// Receives nothing more from the port.
  void remove_rx_queues(std::uint16_t port);
  void add_tx_port(std::uint16_t port, std::unique_ptr<TxPort> queues);

  void add_tx_port(std::uint16_t port, const TxQueues& queues) {
    add_tx_port(port, std::make_unique<TxPort>(queues));
  }

  /// Drops what waits for the port if this lcore transmits there, as DropReason::port_closed, and
  /// what comes for it later.
  void close_tx_port(std::uint16_t port);
  /// Of this port's frames; as Forward.
  void set_frame_limit(std::uint16_t port, std::optional<std::uint32_t> bytes);
  /// The helpers are those given by add_helper().
  void make_worker(std::vector<std::uint16_t> rings, stage::Worker::Settings settings);
  /// The other lcore also makes reductions for this lcore's worker, when it has time.
  void add_helper(Lcore& helper);
  /// Makes the hand-off ring to `worker`, before it is needed.
  void reach(Lcore& worker);
  /// Packets of this ring group go to `worker`, which may be this lcore.
  void route_ring_group(std::uint16_t ring_group, Lcore& worker);
  /// Makes the hand-off rings to `transmitter`, before they are needed.
  void reach_transmitter(Lcore& transmitter);
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
  // awake, so that none sleeps while others are stopped for it. Then all stop between two rounds.
  // Each call returns at once. Until resume(), the caller may read and change anything.
  void stay_awake() { request_.store(Request::stay_awake, std::memory_order_release); }

  bool is_awake() const { return has_come_to(State::awake); }

  void quiesce() { request_.store(Request::quiesce, std::memory_order_release); }

  bool is_quiescent() const { return has_come_to(State::quiescent); }

  void resume() { request_.store(Request::run, std::memory_order_release); }

  unsigned id() const { return id_; }

  // Only while the lcore is stopped, or after run() has returned.

  /// Of queue pairs that are not the rings'.
  void set_aging(std::uint64_t milliseconds);

  const frame::FrameCounters& counters() const { return counters_; }

  const RoundCounters& rounds() const { return rounds_; }

  /// At any time.
  const frame::PortCounters& port_counters(std::uint16_t port) const { return ports_[port]; }

  stage::Worker* worker() { return worker_ ? &*worker_ : nullptr; }

  frame::Trace& trace() { return trace_; }

  /// Frames handed to this lcore by others, and frames that wait for its worker or its ports.
  std::uint64_t queued() const;
  /// Drops what waits in hand-off rings, lines and backlogs, each under the reason of the place
  /// where it waited. Called at the end.
  void discard_queued();

  bool receives() const { return !rx_queues_.empty(); }

  bool transmits() const;

 private:
  enum class Request : std::uint8_t { run, stay_awake, quiesce };
  enum class State : std::uint8_t { running, awake, quiescent };

  // Bursts from one place in a round, while frames wait for the worker. More than it serves, so
  // that what a ring sends too much is dropped from its own line and not where all rings' frames
  // arrive; not much more, so that time is left to serve.
  static constexpr unsigned kMostBursts = 4;
  static constexpr unsigned kMinBurstToDevice = 8; // frames, for a burst of their own to the device
  static constexpr unsigned kReductionBurst = 4;   // slots
  static constexpr std::size_t kMinBytesToOffload = 2048; // bytes of a slot, all ranks
  static constexpr unsigned kRoundsBeforeSleep = 2000;
  static constexpr std::uint64_t kSpinsBeforeYield = 1000;
  /// A burst of so few frames is short: nothing else waits. So what its frames probably need is
  /// loaded before anybody has checked what they are.
  static constexpr unsigned kSmallBurst = 2;
  static constexpr std::uint64_t kRoundsPerPoolCheck =
      64; // rounds between two checks of the mempool

  struct FramesOfEntry;

  /// Frames of a burst that go the fast path one after the other, by one egress port.
  struct Run {
    std::uint16_t ingress = frame::kNoPort;
    std::uint16_t egress = frame::kNoPort;
    unsigned size = 0;
    std::uint64_t bytes = 0;
    bool may_follow_results = false; // Frames before these in the burst take the stages. Their
                                     // results may have to leave first, so
    // these go through the backlog.
    std::array<rte_mbuf*, kBurst> mbufs;
  };

  /// True for an lcore that does not run, whatever the state asked for.
  bool has_come_to(State state) const {
    return state_.load(std::memory_order_acquire) == state ||
           !running_.load(std::memory_order_acquire);
  }

  void transmit(frame::Frame& frame, l2::PortSet ports) override;
  void transmit_results(std::span<frame::Frame* const> results,
                        std::span<const std::optional<std::uint16_t>> ports) override;
  void release(frame::Frame& frame) override;
  frame::Frame* originate(std::uint32_t bytes) override;
  void to_worker(frame::Frame& frame, std::uint16_t ring_group, frame::Instant now) override;
  bool ask(slot::Reduction& reduction) override;

  Outbox<rte_mbuf*>* outbox_to(Lcore& worker);
  Outbox<TxRequest>* outbox_to(Lcore& transmitter, std::size_t traffic);
  template <typename Take>
  unsigned take_bursts(Take&& take);
  unsigned receive_all(frame::Instant now);
  unsigned receive(const RxQueue& queue, frame::Instant now);
  void work_on(Burst& burst, frame::Instant now);
  void send_or_keep(Burst& burst, frame::Instant now);
  bool start(Burst& burst);
  bool start_worker(Burst& burst);
  rte_mbuf* mbuf_at(std::size_t place, const Burst& burst) const;
  stage::FlowCacheEntry* entry_of(const rte_mbuf* mbuf, std::uint16_t port);
  std::size_t keep_all_of(stage::FlowCacheEntry& entry, std::size_t place, Burst& burst) const;
  bool keep_parsed(rte_mbuf* mbuf, Burst& burst, frame::Instant now);
  void load_connections(const Burst& burst);
  void load_header(rte_mbuf* mbuf) const;
  void load(const Kept& frame, const Burst& burst) const;
  void load_next(std::size_t end, Burst& burst) const;
  void load_next_to_serve(Burst& burst) const;
  void load_ahead_of(std::size_t place, const Burst& burst) const;
  bool add_to(Run& run, rte_mbuf* mbuf, frame::Instant now);
  void send(Run& run);
  unsigned serve(frame::Instant now);
  void serve(Burst& burst, frame::Instant now);
  void check_mempool();
  void expect(std::size_t frames);
  wire::EtherType outer_tag_of(std::uint16_t port) const;
  frame::Frame* parse(rte_mbuf* mbuf, std::uint16_t port, frame::Instant now);
  unsigned take_worker_handoffs(frame::Instant now);
  unsigned take_worker_handoff(WorkerHandoff& inbox, frame::Instant now);
  unsigned take_tx_handoffs();
  unsigned make_reductions_for_others();
  void hand_on(frame::Instant now);
  void take_back(const TxRequest& request);
  void take_back(rte_mbuf* mbuf, frame::Instant now);
  unsigned flush_ports();
  void send_by(const TxRequest& request);

  /// Whether frames of this class leave by this lcore's own queue of the port.
  bool leaves_here(frame::TrafficClass traffic, std::uint16_t port) const {
    return tx_routes_[static_cast<std::size_t>(traffic)][port] == nullptr;
  }

  bool is_idle(std::uint16_t port) const { return (idle_tx_ports_ >> port & 1) != 0; }

  void set_busy(std::uint16_t port) { idle_tx_ports_ &= ~(l2::PortSet{1} << port); }

  void transmit_at_once(std::span<frame::Frame* const> results,
                        std::span<const std::optional<std::uint16_t>> ports);
  bool pass(const TxRequest& request);
  void send_in_turn(const TxRequest& request);
  bool send_here(const TxRequest& request);
  TxPort& port_to_push_to(std::uint16_t port);
  void send_elsewhere(const TxRequest& request);
  void queue_on(const TxRequest& request);
  void queue_on_full(TxPort& port, const TxRequest& request);
  void could_not_leave(const TxRequest& request, DropReason reason);
  void discard_handed_on();
  void rest_after(unsigned work);
  void wake();
  void wait_for_resume(const Clock& clock);

  unsigned id_;
  int node_;
  Idle idle_;
  const Shared& shared_;
  frame::FrameCounters counters_;
  RoundCounters rounds_;
  frame::Instant now_; // of the round
  std::array<frame::PortCounters, l2::kMaxPorts> ports_{};
  frame::Trace trace_;
  stage::Forward forward_;
  stage::Receive receive_;
  stage::Dispatch dispatch_;
  stage::L2FastPath l2_fast_path_;
  std::optional<stage::Worker> worker_;

  std::vector<RxQueue> rx_queues_;
  bool parses_frames_ = false; // some frames of the last burst took the stages
  Burst burst_;                // the last one; here, so that an empty queue takes no time for it
  std::size_t last_cached_bytes_ = 0; // bytes of the last frame that had an entry
  bool is_single_frame_ = false; // the frame that is served, in its burst; no results have left
  bool is_receiving_ = true;
  std::array<std::unique_ptr<TxPort>, l2::kMaxPorts>
      tx_ports_;                 // set for the ports on which this lcore transmits
  l2::PortSet own_tx_ports_ = 0; // the same ports
  // Of them: open, results leave here, and nothing waits. Set by a flush, cleared before anything
  // changes this.
  l2::PortSet idle_tx_ports_ = 0;

  // Where frames go next. nullptr: this lcore has the next stage too.
  std::vector<Outbox<rte_mbuf*>*> worker_routes_; // by ring group
  std::array<std::array<Outbox<TxRequest>*, l2::kMaxPorts>, frame::kTrafficClasses> tx_routes_{};
  std::vector<std::pair<const Lcore*, std::unique_ptr<Outbox<rte_mbuf*>>>> worker_outboxes_;
  using TxOutboxes = std::vector<std::pair<const Lcore*, std::unique_ptr<Outbox<TxRequest>>>>;
  std::array<TxOutboxes, frame::kTrafficClasses> tx_outboxes_; // by class, the first one first
  std::vector<ReductionHandoff*> helpers_;                     // asked in turn
  std::size_t next_helper_ = 0;

  // What other lcores hand to this one: one ring for each of them.
  std::vector<std::unique_ptr<WorkerHandoff>> worker_inbox_;
  std::array<std::vector<std::unique_ptr<TxHandoff>>, frame::kTrafficClasses> tx_inbox_; // by class
  std::vector<std::unique_ptr<ReductionHandoff>> reduction_inbox_;

  // Frames that this lcore put into and took out of hand-off rings; copies of flooded frames
  // excluded.
  std::uint64_t handoff_out_ = 0;
  std::uint64_t handoff_in_ = 0;

  ethdev::MemifReader reader_;
  unsigned empty_rounds_ = 0;
  std::uint64_t switches_when_awake_ = 0;
  std::atomic<bool> stopping_{false};          // written by control
  std::atomic<bool> running_{false};           // written by this lcore
  std::atomic<Request> request_{Request::run}; // written by control
  std::atomic<State> state_{State::running};   // written by this lcore
};

} // namespace weir::lcore
