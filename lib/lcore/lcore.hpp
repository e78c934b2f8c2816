// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ethdev/memif_reader.hpp"
#include "frame/frame.hpp"
#include "lcore/clock.hpp"
#include "lcore/handoff.hpp"
#include "lcore/idle.hpp"
#include "lcore/outbox.hpp"
#include "lcore/transmit.hpp"
#include "ring/current_rings.hpp"
#include "stage/dispatch.hpp"
#include "stage/forward.hpp"
#include "stage/receive.hpp"
#include "stage/worker.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace weir::lcore {

/// A receive queue of a device and the switch's index of its port.
struct RxQueue {
  std::uint16_t port = 0;
  std::uint16_t device = 0;
  std::uint16_t queue = 0;
};

/// A frame on its way to the lcore that transmits on its port.
struct TxRequest {
  rte_mbuf* mbuf = nullptr;
  std::uint16_t port = 0;
  frame::Departure departure{};
  frame::TrafficClass traffic{};
};

using TxHandoff = Handoff<TxRequest>;
using WorkerHandoff = Handoff<rte_mbuf*>;
using ReductionHandoff = Handoff<slot::Reduction*>;

/// Entries of a hand-off ring: of frames for a worker, of frames to transmit by traffic class, so
/// that other traffic takes no place from results, and of sums.
inline constexpr unsigned kHandoffEntries = 4096;
inline constexpr std::array<unsigned, frame::kTrafficClasses> kTxHandoffEntries{4096, 2048};

/// One time that an lcore stood still for a question.
struct Stop {
  std::uint64_t ns = 0;
  bool kept_cpu = false; // since it stayed awake, but for the times when it gave way itself
};

/// How often and how full rounds were.
struct RoundCounters {
  std::uint64_t rounds = 0;
  std::uint64_t idle_rounds = 0;
  std::uint64_t sums_for_others = 0; // slots summed up for other lcores' workers
  std::uint64_t starved_rounds = 0;  // of the rounds looked at: no mbufs to receive a burst into
  frame::Histogram rx_burst;         // packets per non-empty receive burst
  frame::Histogram quiescent_ns;     // for each question, its own time away from the CPU included
  Stop last_stop;                    // before the one that this is read in
};

/// One core's loop over the stages that its roles give it. All roles on one lcore is
/// run-to-completion: the stages call one another. Spread over several, they meet in rte_rings.
///
/// Everything in here belongs to the lcore's own thread. Others look at it or change it while it
/// stands still only; port counters they may copy at any time.
class Lcore : private stage::FrameSink, private stage::WorkerSink, private slot::ReductionHelpers {
 public:
  /// What all lcores share: read-only between two swaps of the rings, or, for the stations, safe to
  /// share.
  struct Shared {
    const ring::CurrentRings& rings;
    l2::Bridge& bridge;
    std::vector<std::uint32_t> max_frame_bytes; // by port
    conn::MagicRule::Settings magic_rule;
    rte_mempool* pool = nullptr; // that ports receive into; nullptr: nobody looks whether it is dry
    std::vector<wire::EtherType> outer_tags; // by port; none: all 802.1Q
  };

  Lcore(unsigned id, Idle idle, const Shared& shared);
  ~Lcore() override = default;
  Lcore(const Lcore&) = delete;
  Lcore& operator=(const Lcore&) = delete;

  // Wiring, before run().
  void add_rx_queue(const RxQueue& queue) { rx_queues_.push_back(queue); }

  void add_tx_port(std::uint16_t port, const TxQueues& queues);
  /// The settings' helpers are those that add_helper() names.
  void make_worker(std::vector<std::uint16_t> rings, stage::Worker::Settings settings);
  /// Sums of this lcore's worker are made by that other lcore too, when it has time.
  void add_helper(Lcore& helper);
  /// Packets of this group of rings go to that lcore, which may be this one.
  void route_group(std::uint16_t group, Lcore& worker);
  /// Frames for this port go to that lcore, which may be this one.
  void route_port(std::uint16_t port, Lcore& transmitter);

  /// Runs until stop().
  void run();

  /// What run() repeats, for whoever drives the lcore himself: one look at every queue and hand-off
  /// ring. Returns the number of frames it moved.
  unsigned round(frame::Instant now);

  void wait_until_running() const;

  void stop() { stopping_.store(true, std::memory_order_relaxed); }

  void wait_until_stopped() const;

  /// Stops taking frames from the ports while the rest of the pipeline goes on.
  void stop_receiving() { is_receiving_ = false; }

  // For one thread at a time, which wants to look at several lcores at once: first all of them stay
  // awake, so that none rests while others stand still for it; then all stand still, between two
  // rounds. Each call returns at once. Until resume(), the caller may read and change what it
  // likes.
  void stay_awake() { wish_.store(Wish::stay_awake, std::memory_order_release); }

  bool is_awake() const { return has_come_to(State::awake); }

  void quiesce() { wish_.store(Wish::quiesce, std::memory_order_release); }

  bool is_quiescent() const { return has_come_to(State::quiescent); }

  void resume() { wish_.store(Wish::run, std::memory_order_release); }

  unsigned id() const { return id_; }

  // For whoever has it stand still, or after run() has returned.

  const frame::FrameCounters& counters() const { return counters_; }

  const RoundCounters& rounds() const { return rounds_; }

  /// At any time.
  const frame::PortCounters& port_counters(std::uint16_t port) const { return ports_[port]; }

  stage::Worker* worker() { return worker_ ? &*worker_ : nullptr; }

  frame::Trace& trace() { return trace_; }

  /// Frames that other lcores have handed on to this one, and that wait for its ports.
  std::uint64_t queued() const;
  /// Drops what waits in hand-off rings and backlogs, under the reason that it waited for; for the
  /// end.
  void discard_queued();

  std::vector<RxQueue> rx_queues() const { return rx_queues_; }

  std::vector<std::uint16_t> tx_ports() const;

 private:
  enum class Wish : std::uint8_t { run, stay_awake, quiesce };
  enum class State : std::uint8_t { running, awake, quiescent };

  static constexpr unsigned kBurst = 32;
  static constexpr unsigned kSumBurst = 4;          // slots
  static constexpr std::size_t kWorthAsking = 2048; // bytes of a slot, all ranks
  static constexpr unsigned kRoundsBeforeSleep = 2000;
  static constexpr std::uint64_t kSpinsBeforeYield = 1000;
  static constexpr std::uint64_t kRoundsPerLook = 64; // for mbufs

  /// An lcore that does not run need not come to anything.
  bool has_come_to(State state) const {
    return state_.load(std::memory_order_acquire) == state ||
           !running_.load(std::memory_order_acquire);
  }

  void transmit(frame::Frame& frame, l2::PortSet ports) override;
  void release(frame::Frame& frame) override;
  void to_worker(frame::Frame& frame, std::uint16_t group, frame::Instant now) override;
  bool ask(slot::Reduction& sum) override;

  unsigned receive_all(frame::Instant now);
  unsigned receive(const RxQueue& queue, frame::Instant now);
  void look_for_mbufs();
  wire::EtherType outer_tag_of(std::uint16_t port) const;
  frame::Frame* parse(rte_mbuf* mbuf, std::uint16_t port, frame::Instant now);
  unsigned take_worker_handoffs(frame::Instant now);
  unsigned take_tx_handoffs();
  unsigned make_sums_for_others();
  void hand_on(frame::Instant now);
  void take_back(const TxRequest& request);
  void take_back(rte_mbuf* mbuf, frame::Instant now);
  unsigned flush_ports();
  void send_by(const TxRequest& request);
  void queue_on(const TxRequest& request);
  void could_not_leave(const TxRequest& request, DropReason reason);
  void discard_handed_on();
  void rest_after(unsigned work);
  void come_awake();
  void wait_for_resume(const Clock& clock);

  unsigned id_;
  Idle idle_;
  const Shared& shared_;
  frame::FrameCounters counters_;
  RoundCounters rounds_;
  std::array<frame::PortCounters, l2::kMaxPorts> ports_{};
  frame::Trace trace_;
  stage::Forward forward_;
  stage::Receive receive_;
  stage::Dispatch dispatch_;
  std::optional<stage::Worker> worker_;

  std::vector<RxQueue> rx_queues_;
  bool is_receiving_ = true;
  std::array<std::unique_ptr<TxPort>, l2::kMaxPorts>
      tx_ports_; // set for the ports this lcore transmits on

  // Where frames go on: nullptr means that this lcore is the next one too.
  std::vector<Outbox<rte_mbuf*>*> worker_routes_; // by group
  std::array<std::array<Outbox<TxRequest>*, l2::kMaxPorts>, frame::kTrafficClasses> tx_routes_{};
  std::vector<std::pair<const Lcore*, std::unique_ptr<Outbox<rte_mbuf*>>>> worker_outboxes_;
  using TxOutboxes = std::vector<std::pair<const Lcore*, std::unique_ptr<Outbox<TxRequest>>>>;
  std::array<TxOutboxes, frame::kTrafficClasses> tx_outboxes_; // by class, the first one first
  std::vector<ReductionHandoff*> helpers_;                     // asked in turn
  std::size_t next_helper_ = 0;

  // What others hand to this lcore, one ring for each of them.
  std::vector<std::unique_ptr<WorkerHandoff>> worker_inbox_;
  std::array<std::vector<std::unique_ptr<TxHandoff>>, frame::kTrafficClasses> tx_inbox_; // by class
  std::vector<std::unique_ptr<ReductionHandoff>> sum_inbox_;

  // Frames (copies of flooded ones apart) put into and taken out of hand-off rings by this lcore.
  std::uint64_t handed_on_ = 0;
  std::uint64_t taken_up_ = 0;

  ethdev::MemifReader reader_;
  unsigned empty_rounds_ = 0;
  std::uint64_t switches_when_awake_ = 0;
  std::atomic<bool> stopping_{false};        // written by control
  std::atomic<bool> running_{false};         // written by this lcore
  std::atomic<Wish> wish_{Wish::run};        // written by control
  std::atomic<State> state_{State::running}; // written by this lcore
};

} // namespace weir::lcore
