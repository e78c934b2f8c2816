// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ring/current_rings.hpp"

#include <atomic>
#include <bit>
#include <cassert>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weir::conn {

/// The port of each member, from the configuration, or from its hello during the incarnation
/// (docs/protocol.md §3, "Ports"). Rings that share two neighbours may have learnt different ports
/// from hellos. So an intruder in one ring cannot block another ring. All workers share an object;
/// each asks of its own rings alone, and of any pair.
class PortBindings {
 public:
  /// `current` outlives the object.
  explicit PortBindings(const ring::CurrentRings& current);

  /// Adds a ring that has joined the current set. All workers stand still.
  void adopt(std::uint16_t ring);

  /// False when rings bind the pair's source, but none of them to this port.
  bool may_enter(std::uint16_t pair, std::uint16_t ingress) const {
    const std::uint64_t ports = source_ports_of(pair);
    return ports == 0 || (ports >> ingress & 1) != 0;
  }

  /// The port of a ring's child or parent.
  const std::optional<std::uint16_t>& port_of(const ring::RingChild& child) const {
    return ports_[child.ring][child.child];
  }

  /// The port that the sender's connection leads to.
  const std::optional<std::uint16_t>& receiver_port_of(const ring::RingChild& sender) const {
    return receivers_[sender.ring][sender.child];
  }

  /// The same for all senders of a ring.
  std::span<const std::optional<std::uint16_t>> receiver_ports_of(std::uint16_t ring) const {
    return receivers_[ring];
  }

  /// The port for all traffic to the pair's destination, if its rings agree on one.
  std::optional<std::uint16_t> destination_of(std::uint16_t pair) const {
    const std::uint64_t ports = source_ports_of(current_->reverse_of(pair));
    return std::has_single_bit(ports)
               ? std::optional(static_cast<std::uint16_t>(std::countr_zero(ports)))
               : std::nullopt;
  }

  /// The child's hello came in by that port.
  void bind(const ring::RingChild& child, std::uint16_t port);

  /// The current set says something else of the ports of this ring's members. What hellos have
  /// said of a member counts no longer when the set binds it.
  void update_configured(std::uint16_t ring);

  /// The ring has no incarnation any more.
  void release(std::uint16_t ring);

 private:
  std::uint64_t source_ports_of(std::uint16_t pair) const {
    assert(pair != 0 && pair <= sources_.size());
    return std::atomic_ref(sources_[pair - 1u]).load(std::memory_order_relaxed);
  }

  void make_room_for(std::uint16_t ring);
  void update_all(std::uint16_t ring);
  void update(const ring::RingChild& child);
  std::optional<std::uint16_t> bound_port_of(const ring::RingChild& child) const;
  void update_source(std::uint16_t pair);

  using PortsBySender = std::vector<std::optional<std::uint16_t>>;

  const ring::CurrentRings& current_;
  std::vector<PortsBySender> ports_;     // by ring: of each child, and of the parent
  std::vector<PortsBySender> greeted_;   // by ring
  std::vector<PortsBySender> receivers_; // by ring and sender: the port where each connection leads
  // By pair: a set of ports. Written under the lock, read at any time.
  mutable std::vector<std::uint64_t> sources_;
  std::atomic_flag is_locked_ = ATOMIC_FLAG_INIT; // for changes
};

} // namespace weir::conn
