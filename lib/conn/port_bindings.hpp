// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ring/ring_directory.hpp"

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

namespace weir::conn {

/// Which port each member is behind, by configuration or by its hello for as long as the
/// incarnation lives (docs/protocol.md §3, "Ports"). Rings that share two neighbours can differ
/// about them where hellos told, so that nobody who breaks into one ring bars another. One lcore
/// owns an object; it asks only about its own groups' pairs.
class PortBindings {
 public:
  /// The directory outlives the object.
  explicit PortBindings(const ring::RingDirectory& directory);

  /// False when rings bind the pair's source, and none of them to this port.
  bool may_enter(std::uint16_t pair, std::uint16_t ingress) const {
    const std::uint64_t ports = sources_[pair - 1u];
    return ports == 0 || (ports >> ingress & 1) != 0;
  }

  /// The port of a ring's member.
  std::optional<std::uint16_t> port_of(const ring::RingRank& member) const;

  /// The port that everything to the pair's destination leaves by, where its rings agree on one.
  std::optional<std::uint16_t> destination_of(std::uint16_t pair) const {
    const std::uint64_t ports = sources_[directory_.reverse_of(pair) - 1u];
    return std::has_single_bit(ports)
               ? std::optional(static_cast<std::uint16_t>(std::countr_zero(ports)))
               : std::nullopt;
  }

  /// The rank's hello came in by that port.
  void bind(const ring::RingRank& member, std::uint16_t port);

  /// The ring has no incarnation any more.
  void release(std::uint16_t ring);

 private:
  void update(const ring::RingRank& member);
  void update_source(std::uint16_t pair);

  const ring::RingDirectory& directory_;
  std::vector<std::vector<std::optional<std::uint16_t>>> greeted_; // by ring and rank
  std::vector<std::uint64_t> sources_;                             // by pair: a set of ports
};

} // namespace weir::conn
