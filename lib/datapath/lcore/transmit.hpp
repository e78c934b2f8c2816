// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/counters.hpp"
#include "frame/frame.hpp"
#include "frame/instant.hpp"
#include "l2/port_set.hpp"
#include "lcore/handoffs.hpp"
#include "lcore/mbuf_frame.hpp"
#include "lcore/tx_port.hpp"
#include "stage/forward.hpp"

#include <rte_mempool.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace weir::lcore {

/// By port. Any thread may read them at any time.
using PortCounters = std::array<frame::PortCounters, l2::kMaxPorts>;

/// The last stage of one lcore. There are three ways to send: a frame is enqueued in the backlog of
/// a port that is this lcore's, handed off to the lcore that has the port, or given to the device
/// at once (tx_burst).
class Transmitter : public stage::FrameSink {
 public:
  /// Whether results leave together, when the ports are flushed, or those of the next slot at once.
  enum class Results : std::uint8_t { together, next_at_once };

  /// `pool`: for frames of the switch's own; nullptr: there are none. `forward` records what is
  /// dropped here; it may be constructed later.
  Transmitter(Handoffs& handoffs, stage::Forward& forward, rte_mempool* pool,
              frame::FrameCounters& counters, PortCounters& ports);

  // Setup, while all lcores are stopped.

  void add_port(std::uint16_t port, std::unique_ptr<TxPort> queues);
  /// Drops what waits for the port if this lcore transmits there, as DropReason::port_closed, and
  /// what comes for it later.
  void close_port(std::uint16_t port);

  /// Frames wait for the port, or another lcore has it from now on: until the next flush nothing
  /// leaves at once.
  void set_busy(std::uint16_t port) { idle_ports_ &= ~l2::set_of(port); }

  // For one round.

  void begin_round(frame::Instant now) { now_ = now; }

  void set_results(Results results) { results_ = results; }

  // A frame leaves. See stage::FrameSink.

  void transmit(frame::Frame& frame, l2::PortSet ports) override;
  void transmit_results(std::span<frame::Frame* const> results,
                        std::span<const std::optional<std::uint16_t>> ports) override;
  void release(frame::Frame& frame) override;
  frame::Frame* originate(std::uint32_t bytes) override;

  /// Sends a frame by its port: enqueues it, or hands it off.
  [[gnu::always_inline]] void transmit(const TxRequest& request) {
    if (handoffs_.is_own_port(request.traffic, request.port)) {
      return enqueue(request);
    }
    handoffs_.handoff(request, [this](const TxRequest& refused) { drop_refused(refused); });
  }

  /// Gives the device frames of class `other` that are `bytes` long together, past the backlog.
  /// Returns how many it has taken: none if the port is another lcore's, or frames wait there.
  std::size_t tx_burst(std::span<rte_mbuf* const> mbufs, std::uint64_t bytes, std::uint16_t port);

  /// Enqueues frames of class `other`, to be forwarded. Returns how many found room: none if the
  /// port is another lcore's.
  std::size_t enqueue(std::span<rte_mbuf* const> mbufs, std::uint16_t port);

  /// Enqueues a frame for a port of this lcore, or drops it.
  [[gnu::always_inline]] void enqueue(const TxRequest& request) {
    TxPort& port = busy_port(request.port);
    if (!port.enqueue(request.mbuf, request.bytes, request.departure, request.traffic))
        [[unlikely]] {
      enqueue_on_full(port, request);
    }
  }

  /// For a request that the transmitting lcore was too slow to take.
  void drop_refused(const TxRequest& request) { drop(request, queue_full(request.traffic)); }

  /// Gives the devices what they take. Returns the number of frames.
  unsigned flush();

  /// Waiting frames, copies excluded.
  std::uint64_t frames_waiting() const;
  /// Drops what waits in backlogs. Called at the end.
  void discard();

  /// Whether a port is open on which this lcore transmits.
  bool has_open_port() const;

 private:
  bool is_idle(std::uint16_t port) const { return l2::has(idle_ports_, port); }

  /// The lcore's own port, for which a frame may wait from now on.
  TxPort& busy_port(std::uint16_t port) {
    set_busy(port);
    return *ports_[port];
  }

  void tx_burst_results(std::span<frame::Frame* const> results,
                        std::span<const std::optional<std::uint16_t>> ports);
  bool tx_burst(const TxRequest& request);
  void enqueue_or_handoff(const TxRequest& request);
  void enqueue_on_full_or_handoff(const TxRequest& request);
  void enqueue_on_full(TxPort& port, const TxRequest& request);
  void drop(const TxRequest& request, DropReason reason);

  Handoffs& handoffs_;
  stage::Forward& forward_;
  rte_mempool* pool_;
  frame::FrameCounters& counters_;
  PortCounters& port_counters_;
  frame::Instant now_; // of the round
  Results results_ = Results::together;
  std::array<std::unique_ptr<TxPort>, l2::kMaxPorts>
      ports_;                 // set for the ports on which this lcore transmits
  l2::PortSet own_ports_ = 0; // the same ports
  // Of them: open, results leave here, and nothing waits. Set by a flush, cleared before anything
  // changes this.
  l2::PortSet idle_ports_ = 0;
};

} // namespace weir::lcore
