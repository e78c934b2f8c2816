// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/connection_owners.hpp"
#include "frame/counters.hpp"
#include "frame/frame.hpp"
#include "l2/port_set.hpp"
#include "lcore/handoff.hpp"
#include "lcore/outbox.hpp"
#include "lcore/round_counters.hpp"
#include "slot/reduction.hpp"

#include <rte_mbuf.h>

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace weir::lcore {

/// A frame for the lcore that transmits on its port.
struct TxRequest {
  rte_mbuf* mbuf = nullptr;
  std::uint16_t port = 0;
  frame::Departure departure{};
  frame::TrafficClass traffic{};
  std::uint32_t bytes = 0; // of the frame: the mbuf may be far away

  /// Copies of flooded frames are not counted.
  bool counts() const { return departure != frame::Departure::copy; }
};

using TxHandoff = Handoff<TxRequest>;
using WorkerHandoff = Handoff<rte_mbuf*>;
using ReductionHandoff = Handoff<slot::Reduction*>;

/// Of two ring neighbours: whether rings of several workers share them.
enum class PairWorkers : std::uint8_t { one, several };

/// Entries of a hand-off ring. There are rings for frames to a worker, for frames to transmit in
/// each traffic class (so that other traffic takes no place from results), and for reductions.
inline constexpr unsigned kHandoffEntries = 4096;
inline constexpr std::array<unsigned, frame::kTrafficClasses> kTxHandoffEntries{4096, 2048};

/// What one lcore hands to others, by an outbox for each of them, and what they hand to it, by an
/// inbox for each of them. Counts the frames.
class Handoffs : public slot::ReductionHelpers {
 public:
  /// `node` is the lcore's NUMA node. Its inboxes are in memory of this node.
  /// All that comes between these pairs of neighbours is this lcore's until it is told otherwise.
  Handoffs(unsigned lcore, int node, std::size_t pairs, RoundCounters& rounds);

  // Setup, while all lcores are stopped.

  /// Makes the ring to another lcore's worker, before it is needed.
  void reach_worker(Handoffs& worker);
  /// Packets for regions go to `owner`, which may be this lcore's. Said before anything else hands
  /// to it.
  void route_regions(Handoffs& owner);
  /// Makes the rings to another lcore that transmits, before they are needed.
  void reach_transmitter(Handoffs& transmitter);
  /// Packets of this pair of neighbours go to `worker`, which may be this lcore's. Where rings of
  /// several workers share the pair, to the worker that has the packet's connection, if one has it.
  void route_pair(std::uint16_t pair, Handoffs& worker, PairWorkers workers);
  /// The ring is `worker`'s, which may be this lcore's and has this number among all workers.
  void route_ring(std::uint16_t ring, Handoffs& worker, conn::ConnectionOwners::Worker number);
  /// Frames for this port go to `transmitter`, which may be this lcore's.
  void route_port(std::uint16_t port, Handoffs& transmitter);
  /// The other lcore also makes reductions for this lcore's worker, when it has time.
  void add_helper(Handoffs& helper);

  // To other lcores.

  /// Whether this lcore's own worker has all that comes between these neighbours.
  bool is_own_pair(std::uint16_t pair) const {
    assert(pair != 0 && pair <= pair_routes_.size());
    return pair_routes_[pair - 1u] == nullptr;
  }

  /// The way to the worker that has the frame: nullptr where this lcore has it. Not for a pair of
  /// this lcore's own.
  Outbox<rte_mbuf*>* way_of(const frame::Frame& frame, const conn::ConnectionOwners* owners) const {
    const PairRoute& route = *pair_routes_[frame.pair - 1u];
    if (route.workers == PairWorkers::one) {
      return route.first;
    }
    assert(owners != nullptr);
    const std::optional<conn::ConnectionOwners::Worker> owner = owners->owner_of(frame);
    return owner ? workers_[*owner] : route.first;
  }

  /// The way to the worker that has the ring: nullptr where this lcore has it.
  Outbox<rte_mbuf*>* way_to_ring(std::uint16_t ring) const { return ring_routes_[ring]; }

  /// The way to the worker that has the regions: nullptr where this lcore has it.
  Outbox<rte_mbuf*>* way_to_regions() const { return way_to_regions_; }

  /// Whether frames of this class leave by this lcore's own queue of the port.
  bool is_own_port(frame::TrafficClass traffic, std::uint16_t port) const {
    return tx_routes_[static_cast<std::size_t>(traffic)][port] == nullptr;
  }

  /// To the worker of another lcore. Calls `refuse` with each mbuf that this one is too slow to
  /// take: now this or an earlier one, or in flush().
  template <typename Refuse>
  void handoff(rte_mbuf* mbuf, Outbox<rte_mbuf*>& way, Refuse&& refuse) {
    ++out_;
    ++rounds_.handed_over;
    way.handoff(mbuf, [&](rte_mbuf* refused) {
      take_back();
      refuse(refused);
    });
  }

  /// To another lcore that transmits; `refuse` likewise.
  template <typename Refuse>
  [[gnu::always_inline]] void handoff(const TxRequest& request, Refuse&& refuse) {
    out_ += request.counts() ? 1 : 0;
    assert(!is_own_port(request.traffic, request.port));
    tx_routes_[static_cast<std::size_t>(request.traffic)][request.port]->handoff(
        request, [&](const TxRequest& refused) {
          take_back(refused);
          refuse(refused);
        });
  }

  /// To a helper, if there is one that has room, and the reduction is worth it.
  bool ask(slot::Reduction& reduction) override;

  /// Hands over what waits in outboxes.
  template <typename RefuseFrame, typename RefuseRequest>
  void flush(RefuseFrame&& refuse_frame, RefuseRequest&& refuse_request) {
    for (const auto& [worker, outbox] : worker_outboxes_) {
      outbox->flush([&](rte_mbuf* refused) {
        take_back();
        refuse_frame(refused);
      });
    }
    for_each_tx_outbox([&](Outbox<TxRequest>& outbox) {
      outbox.flush([&](const TxRequest& refused) {
        take_back(refused);
        refuse_request(refused);
      });
    });
  }

  // From other lcores.

  /// Lcores that hand frames to this one's worker.
  std::size_t worker_inboxes() const { return worker_inbox_.size(); }

  /// Whether what comes from there is for regions, and nothing else is.
  bool is_for_regions(std::size_t inbox) const { return inbox < region_inboxes_; }

  /// Takes frames for this lcore's worker from one of them; returns how many.
  unsigned take_frames(std::size_t inbox, std::span<rte_mbuf*> mbufs) {
    const unsigned count = worker_inbox_[inbox]->pop(mbufs);
    in_ += count;
    return count;
  }

  /// Calls `act` with at most a burst of each lcore's requests to transmit, ring traffic first.
  /// Returns their number.
  template <typename Act>
  unsigned take_requests(Act&& act) {
    unsigned taken = 0;
    for (const auto& inboxes : tx_inbox_) {
      for (const auto& inbox : inboxes) {
        std::array<TxRequest, kMostRequests> requests;
        const unsigned count = inbox->pop(requests);
        for (const TxRequest& request : std::span(requests).first(count)) {
          in_ += request.counts() ? 1 : 0;
          act(request);
        }
        taken += count;
      }
    }
    return taken;
  }

  /// Returns how many reductions were made.
  unsigned make_reductions_for_others();

  /// Frames that went out and have not come in. May be negative on one lcore; the sum over all
  /// lcores is right.
  std::uint64_t under_way() const { return out_ - in_; }

  /// Takes out all that waits here for this lcore, and the requests that wait in its own outboxes.
  /// Calls the one or the other with each.
  template <typename DropFrame, typename DropRequest>
  void discard(DropFrame&& drop_frame, DropRequest&& drop_request) {
    for_each_tx_outbox([&](Outbox<TxRequest>& outbox) { // sent by a reset
      outbox.discard([&](const TxRequest& request) {
        take_back(request);
        drop_request(request);
      });
    });
    rte_mbuf* mbuf = nullptr;
    for (std::size_t inbox = 0; inbox < worker_inboxes(); ++inbox) {
      while (take_frames(inbox, {&mbuf, 1}) != 0) {
        drop_frame(mbuf);
      }
    }
    while (take_requests(drop_request) != 0) {
    }
  }

 private:
  /// Where the packets of two neighbours go.
  struct PairRoute {
    Outbox<rte_mbuf*>* first = nullptr; // the pair's first worker; nullptr: this lcore's
    PairWorkers workers = PairWorkers::one;

    bool operator==(const PairRoute&) const = default;
  };

  static constexpr unsigned kMostRequests = 32;
  static constexpr unsigned kReductionBurst = 4;          // slots
  static constexpr std::size_t kMinBytesToOffload = 2048; // of a slot, all ranks

  template <typename Value>
  using Outboxes = std::vector<std::pair<const Handoffs*, std::unique_ptr<Outbox<Value>>>>;

  template <typename Value>
  using Inboxes = std::vector<std::unique_ptr<Handoff<Value>>>;

  template <typename Value>
  static Outbox<Value>* outbox_for(const Handoffs& receiver, const std::string& name,
                                   unsigned entries, Inboxes<Value>& inbox,
                                   Outboxes<Value>& outboxes);
  Outbox<rte_mbuf*>* outbox_to(Handoffs& worker);
  Outbox<TxRequest>* outbox_to(Handoffs& transmitter, std::size_t traffic);

  template <typename Act>
  void for_each_tx_outbox(Act&& act) {
    for (const Outboxes<TxRequest>& outboxes : tx_outboxes_) {
      for (const auto& [transmitter, outbox] : outboxes) {
        act(*outbox);
      }
    }
  }

  void take_back() {
    assert(out_ != 0 && rounds_.handed_over != 0);
    --out_;
    --rounds_.handed_over;
  }

  void take_back(const TxRequest& refused) {
    assert(out_ != 0 || !refused.counts());
    out_ -= refused.counts() ? 1 : 0;
  }

  unsigned lcore_;
  int node_;
  RoundCounters& rounds_;

  // Frames that this lcore put into and took out of hand-off rings.
  std::uint64_t out_ = 0;
  std::uint64_t in_ = 0;

  // Where frames go next. nullptr: this lcore has the next stage too.
  std::deque<PairRoute> routes_;                // those that there are
  std::vector<const PairRoute*> pair_routes_;   // by pair
  std::vector<Outbox<rte_mbuf*>*> ring_routes_; // by ring
  std::vector<Outbox<rte_mbuf*>*> workers_;     // by number
  Outbox<rte_mbuf*>* way_to_regions_ = nullptr;
  std::array<std::array<Outbox<TxRequest>*, l2::kMaxPorts>, frame::kTrafficClasses> tx_routes_{};
  Outboxes<rte_mbuf*> worker_outboxes_;
  std::array<Outboxes<TxRequest>, frame::kTrafficClasses> tx_outboxes_; // by class, ring first
  std::vector<ReductionHandoff*> helpers_;                              // asked in turn
  std::size_t next_helper_ = 0;

  // What other lcores hand to this one: one ring for each of them.
  Inboxes<rte_mbuf*> worker_inbox_;
  std::size_t region_inboxes_ = 0;                                  // the first ones of these
  std::array<Inboxes<TxRequest>, frame::kTrafficClasses> tx_inbox_; // by class, ring first
  Inboxes<slot::Reduction*> reduction_inbox_;
};

} // namespace weir::lcore
