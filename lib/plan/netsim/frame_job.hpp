// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "netsim/fold_switch.hpp"
#include "netsim/frame_network.hpp"
#include "netsim/message_list.hpp"
#include "netsim/weir_run.hpp"
#include "netsim/worker.hpp"
#include "plan/fabric.hpp"
#include "plan/topology.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace weir::netsim {

/// One attempt: all frames under way, the workers and the switches that fold. A ring's frames go
/// where its switches send them. Frames of a ring without switches follow their connection's way.
class FrameJob {
 public:
  /// `seed` decides which frames are lost.
  FrameJob(const plan::Topology& topology, const WeirSettings& settings, std::uint64_t seed);
  ~FrameJob();
  FrameJob(const FrameJob&) = delete;
  FrameJob& operator=(const FrameJob&) = delete;

  /// Adds a ring whose switches fold `bytes`.
  void add_folded_ring(const plan::FabricRing& ring, std::uint64_t bytes);
  /// Adds a ring of hosts.
  void add_host_ring(std::span<const plan::VertexId> order, std::uint64_t bytes);
  /// Adds exchanges between hosts, whose number is a power of two: halving, then doubling.
  void add_halving_doubling(std::span<const plan::VertexId> order, std::uint64_t bytes);

  enum class Outcome : std::uint8_t { finished, failed };

  /// Runs until all is done or a queue pair has failed. Errors: SimulationError after `kTimeout`.
  Outcome run();

  /// The attempt's own duration, without restarts.
  WeirResult result() const;

 private:
  static constexpr Time kTimeout = 1000 * kSecond;

  struct Ring {
    std::uint32_t world = 0;
    std::uint32_t first_worker = 0;
    std::vector<MessageList> messages;   // by rank, or one list for all
    std::vector<std::uint32_t> hub_at;   // by vertex; kNobody
    std::vector<std::uint32_t> child_at; // by link into a hub; kNobody: from its parent
    std::vector<plan::VertexId> members;
  };

  class Hub;

  /// A host's link, which its workers use in turn.
  struct Interface {
    enum class Call : std::uint8_t { none, pending };

    std::vector<std::uint32_t> workers;
    std::size_t turn = 0;
    Call call = Call::none; // when the link is free
  };

  /// Two hosts that send each other so many bytes, on queue pairs of their own.
  struct Exchange {
    std::array<plan::VertexId, 2> hosts{};
    std::array<std::uint64_t, 2> bytes{};
  };

  /// `rank` may be one behind the last: the ring closes there.
  Worker& worker_of(const Ring& ring, std::uint32_t rank) {
    return workers_[ring.first_worker + (rank == ring.world ? 0 : rank)];
  }

  Ring& add_hosts(std::span<const plan::VertexId> order);
  void add_workers(Ring& ring, std::uint32_t index);
  void set_shortest_ways(const Ring& ring);
  std::uint32_t add_exchange(const Exchange& exchange);
  void open_after(std::uint32_t earlier, std::uint32_t later);
  void add_hubs(const plan::FabricRing& fabric, std::uint32_t index);
  void set_ways(const plan::FabricRing& fabric, std::uint32_t index);
  void dispatch(const FrameEvent& event);
  void arrive(FrameId id, plan::LinkId link);
  void attend(const Frame& frame, plan::LinkId link);
  void forward(Frame frame);
  void deliver(const Frame& frame);
  void answer(const Frame& frame, Receiver::Reply reply);
  void pump(std::uint32_t worker);
  void send_all(std::uint32_t worker);
  void send_in_turn(plan::LinkId link);
  void call_when_free(plan::LinkId link);
  bool send_next(std::uint32_t worker);
  void set_timer(std::uint32_t worker);
  void open(std::uint32_t worker);
  Time attended_at(plan::VertexId vertex);

  const plan::Topology& topology_;
  const WeirSettings settings_;
  FrameNetwork network_;
  Time now_ = 0;
  std::deque<Ring> rings_;
  std::deque<Worker> workers_;
  std::vector<std::unique_ptr<Hub>> hubs_;
  std::map<plan::LinkId, Interface> interfaces_;       // only if the link decides what is sent
  std::map<plan::VertexId, std::vector<Time>> lcores_; // times at which each is free
  std::size_t done_ = 0;
  bool has_failed_ = false;
};

} // namespace weir::netsim
