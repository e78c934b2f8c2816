// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "netsim/time.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace weir::netsim {

/// Index into Network::links().
using LinkIndex = std::uint32_t;
inline constexpr std::uint32_t kNobody = UINT32_MAX;

/// One direction of a cable.
struct Link {
  std::uint64_t bits_per_second = 0;
  Time latency = 0; // from a bit's sending to its arrival, with the far end's routing time

  bool operator==(const Link&) const = default;
};

/// One link of a packet's way.
struct Hop {
  /// In a ring of links, packets could wait in a circle for each other's room. So on a torus,
  /// packets that cross a dimension's dateline (its wrapped links) have other virtual channels in
  /// that dimension than those that do not (Dally and Seitz, IEEE ToC C-36(5), 1987).
  enum class Dateline : std::uint8_t { none, not_crossed, crossed };

  LinkIndex link = 0;
  Dateline dateline = Dateline::none;
};

/// The links that packets cross. Only routes know what is at their ends.
class Network {
 public:
  LinkIndex add(Link link) {
    links_.push_back(link);
    return static_cast<LinkIndex>(links_.size() - 1);
  }

  std::span<const Link> links() const { return links_; }

  const Link& link(LinkIndex index) const { return links_[index]; }

 private:
  std::vector<Link> links_;
};

/// A run's result for one link.
struct LinkUse {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0; // with headers
  Time busy = 0;

  bool operator==(const LinkUse&) const = default;
};

} // namespace weir::netsim
