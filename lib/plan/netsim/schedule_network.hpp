// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "netsim/network.hpp"
#include "netsim/schedule_run.hpp"
#include "plan/schedule.hpp"
#include "plan/topology.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace weir::netsim {

/// A topology's links with the same numbers. Where nodes are routers, also the links between a
/// node's interface and its router: `channels` in and as many out.
class ScheduleNetwork {
 public:
  /// Errors: SimulationError for a message whose route does not lead from its sender to its
  /// receiver.
  ScheduleNetwork(const plan::Topology& topology, const plan::Schedule& schedule,
                  const NodeTraits& nodes);

  const Network& network() const { return network_; }

  /// The way of a message that leaves by that channel of its sender. Valid until the same message
  /// is asked for again.
  std::span<const Hop> route(plan::MessageId message, std::uint32_t channel);

 private:
  void add_channels(const plan::Topology& topology, const plan::Schedule& schedule,
                    const NodeTraits& nodes);
  void add_routes(const plan::Topology& topology, const plan::Schedule& schedule);
  LinkIndex ejection_of(const plan::Message& message);

  Network network_;
  bool has_channels_;
  std::uint32_t channels_;
  LinkIndex first_injection_ = 0;
  LinkIndex first_ejection_ = 0;
  std::vector<Hop> hops_;               // routes one after the other
  std::vector<std::uint32_t> first_;    // message → its route's first hop; one more at the end
  std::vector<LinkIndex> injection_;    // message → its sender's first injection channel
  std::vector<std::uint32_t> received_; // node → messages of receiving_step_
  std::vector<plan::Step> receiving_step_;
};

} // namespace weir::netsim
