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
#include <tuple>
#include <vector>

namespace weir::events {

/// Tells who has a tree's ring otherwise than this switch, or is at another port. Hellos climb
/// again and again: each difference is told when it is new, and again while it stays, so that it is
/// told in the end though the log once left it out.
class HelloWatch {
 public:
  /// A difference is new again when no hello has come for so long.
  static constexpr std::uint64_t kForgotten = 60'000'000'000; // ns
  /// One that stays is told again.
  static constexpr std::uint64_t kSaidAgain = 300'000'000'000; // ns
  /// So long a port to no switch of the ring has no second line, whatever its hellos say.
  static constexpr std::uint64_t kHostsPause = 60'000'000'000; // ns

  /// `refused` in the order of time, also those of earlier looks; `ports` by their places.
  std::vector<Event> look(const ring::RingSet& set, std::span<const conn::RefusedHello> refused,
                          std::span<const PortLink> ports);

 private:
  struct Told {
    std::string text;
    std::uint64_t at_ns = 0;   // of the last hello
    std::uint64_t said_ns = 0; // when it was told last
  };

  /// Whose hellos are told apart: of a switch by ring, 0 for others, and by port.
  using Source = std::tuple<conn::PortOwner, std::uint32_t, std::uint16_t>;

  bool is_news(const conn::RefusedHello& hello, conn::PortOwner owner, const std::string& text);

  std::map<Source, Told> told_;
  std::uint64_t seen_until_ns_ = 0;
};

} // namespace weir::events
