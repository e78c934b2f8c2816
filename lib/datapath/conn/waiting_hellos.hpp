// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/connection_table.hpp"
#include "conn/incarnation.hpp"
#include "frame/frame.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace weir::conn {

/// A hello that waits for those of the other children (docs/protocol.md §2a).
struct WaitingHello {
  frame::Frame* frame = nullptr; // nullptr: the place is free
  Connection* connection = nullptr;
  Incarnation incarnation;
  std::uint64_t claim = 0;         // QueuePairClaims' name of its queue pair; 0: not told
  std::uint64_t arrived_ns = 0;    // stage::Timers writes it, and the next one
  std::uint64_t kept_alive_ns = 0; // when its sender was last told to wait
  std::uint64_t climbed_ns = 0;    // of a last child: when its set last went up; 0: never
  std::uint64_t order = 0;         // order of arrival
  std::uint64_t heard = 0;         // the same, of its newest repeat
};

inline constexpr std::size_t kWaitingPerChild = 4;

/// By the last child's hellos: for which of their incarnations every child's hello waits.
struct CompleteSets {
  std::array<bool, kWaitingPerChild> is_complete{}; // by place
  std::optional<std::size_t> newest;                // a place
};

/// The waiting hellos of one ring, outside its slots: four of each child, of different
/// incarnations. The object's owner owns the frames.
class WaitingHellos {
 public:
  static constexpr std::size_t kPerChild = kWaitingPerChild;

  explicit WaitingHellos(std::uint16_t children) : places_(children) {}

  /// The hello of this child for this incarnation; nullptr when none waits.
  const WaitingHello* find(std::uint16_t child, const Incarnation& incarnation) const;

  WaitingHello* find(std::uint16_t child, const Incarnation& incarnation) {
    return const_cast<WaitingHello*>(std::as_const(*this).find(child, incarnation));
  }

  /// Any child's hello for this incarnation; nullptr when none waits.
  const WaitingHello* find(const Incarnation& incarnation) const;

  /// The place for one more hello of this child, which came by `port`: a free one, or the oldest's
  /// of the port that would otherwise have the most. So who sends many hellos by one port displaces
  /// at last only his own.
  WaitingHello& place_for(std::uint16_t child, std::uint16_t port);

  /// `place` comes from place_for() and is free.
  void put(WaitingHello& place, const WaitingHello& hello);

  /// The child's hello that came last. One must wait.
  WaitingHello& newest_of(std::uint16_t child);

  /// The hello has come again.
  void hear(WaitingHello& hello) {
    hello.heard = arrivals_++;
    sets_.reset();
  }

  /// True when every child has a hello of this incarnation.
  bool is_complete(const Incarnation& incarnation) const;

  /// True when they have gone up to the switch above, as a complete set (docs/protocol.md §11.5).
  bool has_climbed(const Incarnation& incarnation) const;

  /// The last child's hello of the complete set of which a hello came last, or came again; nullptr
  /// when none is complete.
  const WaitingHello* newest_complete() const;

  WaitingHello* newest_complete() {
    return const_cast<WaitingHello*>(std::as_const(*this).newest_complete());
  }

  /// Whether every child has a hello of this incarnation, and it is not the newest such set.
  bool is_older_set(const Incarnation& incarnation) const;

  std::span<WaitingHello> of(std::uint16_t child) { return places_[child]; }

  std::span<const WaitingHello> of(std::uint16_t child) const { return places_[child]; }

  std::uint32_t waiting_of(std::uint16_t child) const;

  /// The number of waiting hellos. take() lowers it.
  std::uint32_t size() const { return size_; }

  WaitingHello take(WaitingHello& place);

 private:
  const CompleteSets& complete_sets() const;
  std::uint64_t last_heard_of(const Incarnation& incarnation) const;

  std::vector<std::array<WaitingHello, kPerChild>> places_;
  // The timers ask for them for each hello of each child. Empty when a hello came, came again or
  // went since.
  mutable std::optional<CompleteSets> sets_;
  std::uint64_t arrivals_ = 0;
  std::uint32_t size_ = 0;
};

} // namespace weir::conn
