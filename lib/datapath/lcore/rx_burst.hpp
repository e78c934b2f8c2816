// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/counters.hpp"
#include "frame/frame.hpp"
#include "frame/instant.hpp"
#include "lcore/burst.hpp"
#include "lcore/round_counters.hpp"
#include "lcore/shared.hpp"
#include "lcore/transmit.hpp"
#include "stage/dispatch.hpp"
#include "stage/forward.hpp"
#include "stage/l2_fast_path.hpp"
#include "stage/receive.hpp"
#include "stage/worker.hpp"

#include <rte_ethdev.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace weir::lcore {

/// A device's receive queue, and the switch's index of its port.
struct RxQueue {
  std::uint16_t port = 0;
  std::uint16_t device = 0;
  std::uint16_t queue = 0;
};

/// What an lcore does with a receive burst. It loads what the frames need ahead of their turn,
/// sends runs of frames by the L2 fast path, takes a ring's expected packets by the flow cache, and
/// leaves all others to the stages.
class RxBurst {
 public:
  /// What it works with. All outlive it, and some may be constructed later.
  struct Parts {
    const Shared& shared;
    std::optional<stage::Worker>& worker; // of this lcore
    stage::WorkerSink& workers;           // of all lcores
    stage::Forward& forward;
    Transmitter& transmitter;
    frame::FrameCounters& counters;
    PortCounters& ports;
    RoundCounters& rounds;
  };

  explicit RxBurst(const Parts& parts);

  /// Receives a burst and works on it. Returns the number of frames: little for a queue that is
  /// empty, as most are when there is little to do.
  [[gnu::always_inline]] unsigned receive(const RxQueue& queue, frame::Instant now) {
    burst_.received = rte_eth_rx_burst(queue.device, queue.queue, burst_.mbufs.data(), kBurst);
    if (burst_.received == 0) {
      return 0;
    }
    burst_.begin(queue.port);
    work_on(burst_, now);
    return static_cast<unsigned>(burst_.received);
  }

  /// Of the queue pairs of strangers.
  void set_aging(std::uint64_t milliseconds) { dispatch_.set_aging(milliseconds); }

  const stage::SeenProbes& seen_probes() const { return dispatch_.seen_probes(); }

  const conn::RefusedHellos& refused_hellos() const { return dispatch_.refused_hellos(); }

 private:
  static constexpr unsigned kMinBurstToDevice = 8; // frames, for a burst of their own to the device
  /// A burst of so few frames is short: nothing else waits. So what its frames probably need is
  /// loaded before anybody has checked what they are.
  static constexpr unsigned kSmallBurst = 2;

  struct FramesOfEntry;

  /// Frames of a burst that go the L2 fast path one after the other, by one egress port.
  struct Run {
    std::uint16_t ingress = frame::kNoPort;
    std::uint16_t egress = frame::kNoPort;
    unsigned size = 0;
    std::uint64_t bytes = 0;
    // Frames before these in the burst take the stages. Their results may have to leave first, so
    // these go through the backlog.
    bool may_follow_results = false;
    std::array<rte_mbuf*, kBurst> mbufs;
  };

  void work_on(Burst& burst, frame::Instant now);
  void send_or_keep(Burst& burst, frame::Instant now);
  bool start(Burst& burst, frame::Instant now);
  bool start_worker(Burst& burst, frame::Instant now);
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
  void transmit(Run& run);
  void serve(Burst& burst, frame::Instant now);
  frame::Frame* parse(rte_mbuf* mbuf, std::uint16_t port, frame::Instant now);

  const Shared& shared_;
  std::optional<stage::Worker>& worker_;
  stage::Forward& forward_;
  Transmitter& transmitter_;
  frame::FrameCounters& counters_;
  PortCounters& ports_;
  RoundCounters& rounds_;
  stage::Receive receive_;
  stage::Dispatch dispatch_;
  stage::L2FastPath l2_fast_path_;

  bool parses_frames_ = false; // some frames of the last burst took the stages
  Burst burst_;                // the last one; here, so that an empty queue takes no time for it
  std::size_t last_cached_bytes_ = 0; // bytes of the last frame that had a flow cache entry
};

/// Tells the worker, if there is one, whether a burst that has so many frames is likely to be
/// followed by another.
inline void expect_more_after(std::size_t frames, std::optional<stage::Worker>& worker) {
  if (worker) {
    worker->queue().expect(frames == kBurst ? stage::Backlog::likely : stage::Backlog::none);
  }
}

} // namespace weir::lcore
