// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/hello_difference.hpp"
#include "events/event.hpp"
#include "events/resource_watch.hpp"
#include "ring/ring_set.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace weir::events {

/// Tells who has a tree's ring otherwise than this switch, or is at another port. Hellos climb
/// again and again: each difference is told once, and anew when none has come for a minute.
class HelloWatch {
 public:
  static constexpr std::uint64_t kForgotten = 60'000'000'000; // ns

  /// `refused` in the order of time, also those of earlier looks; `ports` by their places.
  std::vector<Event> look(const ring::RingSet& set, std::span<const conn::RefusedHello> refused,
                          std::span<const PortLink> ports);

 private:
  struct Told {
    std::string text;
    std::uint64_t at_ns = 0; // of the last hello
  };

  std::map<std::pair<std::uint32_t, std::uint16_t>, Told> told_; // by ring and port
  std::uint64_t seen_until_ns_ = 0;
};

} // namespace weir::events
