// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Ranks that share a NIC, while their group is formed: who they are, and how they come to the
/// memory that they share.

#include "host/api/membership.hpp"
#include "host/node/node_meeting.hpp"
#include "host/node/node_reducer.hpp"
#include "host/node/node_transport.hpp"
#include "host/rendezvous/agreement.hpp"
#include "host/rendezvous/rendezvous.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace weir::host {

/// Each step is made once, by all ranks.
class NodeFormation {
 public:
  /// They outlive this object.
  NodeFormation(const GroupOptions& options, Rendezvous& rendezvous, Membership& membership)
      : options_(options), rendezvous_(rendezvous), membership_(membership) {}

  /// Who shares a NIC with whom. A rank that does not lead gives its device back. Throws Error.
  void find(const std::vector<Introduction>& introductions);

  /// Whether no rank is behind another NIC.
  bool is_all() const { return membership_.nodes.nodes() == 1; }

  /// Whether this rank reaches the network for its node.
  bool leads() const { return membership_.nodes.leads(options_.rank); }

  std::uint16_t node() const { return membership_.nodes.node_of(options_.rank); }

  /// The leaders of the nodes behind and ahead in the ring.
  std::uint16_t predecessor() const { return leader_after(membership_.nodes.nodes() - 1U); }

  std::uint16_t successor() const { return leader_after(1); }

  /// Of a leader: the reducer, or one around it if ranks share NICs, by channel.
  std::unique_ptr<Reducer> around(std::unique_ptr<Reducer> between);

  /// The reducers so far are gone.
  void begin_anew() { reducers_.clear(); }

  /// The memory of each node, for these channels of the options' rings. A leader's have reducers;
  /// for the other ranks makes them. Throws Error.
  std::vector<std::unique_ptr<Reducer>> share(const std::vector<std::size_t>& channels);

 private:
  std::uint16_t leader_after(unsigned distance) const;
  NodeGeometry geometry(std::size_t channels) const;
  NodeDescriptors meet(const NodeGeometry& geometry);

  const GroupOptions& options_;
  Rendezvous& rendezvous_;
  Membership& membership_;
  NodeTransport* transport_ = nullptr; // null: no ranks share a NIC
  std::vector<NodeReducer*> reducers_; // by channel
};

} // namespace weir::host
