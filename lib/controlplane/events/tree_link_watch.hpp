// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "events/event.hpp"
#include "events/resource_watch.hpp"
#include "ring/ring_set.hpp"

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace weir::events {

/// Finds links to other switches of trees that are down, and names their rings. For these the
/// switch is silent until the link is back (docs/protocol.md §11.7).
class TreeLinkWatch {
 public:
  /// `ports` by their places. A place may be empty, and then has no name. A ring is told of once
  /// while a link of it is down; all that are news, in one line for each switch behind the port.
  std::vector<Event> look(const ring::RingSet& set, std::span<const PortLink> ports);

 private:
  /// One end of a link between switches, as this one's rings name it.
  struct End {
    std::string port;
    std::string name; // of the switch at the other end
    bool is_parent = false;

    auto operator<=>(const End&) const = default;
  };

  using Rings = std::set<std::uint32_t>; // ids

  static std::map<End, Rings> ends_of(const ring::RingSet& set, std::span<const PortLink> ports,
                                      std::uint64_t down);
  void tell_down(const std::map<End, Rings>& dead, std::vector<Event>& events) const;
  void tell_up(const std::map<End, Rings>& dead, std::vector<Event>& events) const;

  std::map<End, Rings> told_; // of links that are down
};

} // namespace weir::events
