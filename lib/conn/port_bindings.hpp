// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/ring_directory.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace weir::conn {

/// Which port each member is behind, by configuration or by its hello for as long as the
/// incarnation lives (docs/protocol.md §3, "Ports"). One lcore owns an object; it asks only about
/// its own groups' pairs.
class PortBindings {
 public:
  /// The directory outlives the object.
  explicit PortBindings(const RingDirectory& directory);

  /// The port that the pair's source is bound to.
  std::optional<std::uint16_t> source_of(std::uint16_t pair) const { return sources_[pair - 1u]; }

  /// The port that everything to the pair's destination leaves by.
  std::optional<std::uint16_t> destination_of(std::uint16_t pair) const {
    return sources_[directory_.reverse_of(pair) - 1u];
  }

  /// The rank's hello came in by that port.
  void bind(const RingRank& member, std::uint16_t port);

  /// The ring has no incarnation any more.
  void release(std::uint16_t ring);

 private:
  std::optional<std::uint16_t> port_of(const RingRank& member) const;
  void update(const RingRank& member);
  void update_source(std::uint16_t pair);

  const RingDirectory& directory_;
  std::vector<std::vector<std::optional<std::uint16_t>>> greeted_; // by ring and rank
  std::vector<std::optional<std::uint16_t>> sources_;              // by pair
};

} // namespace weir::conn
