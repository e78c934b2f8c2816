// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "events/event.hpp"
#include "events/resource_watch.hpp"
#include "ring/ring_set.hpp"
#include "stage/snapshot.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace weir::events {

/// A count that is told of at once, and then at most once a minute with what has come meanwhile.
class PacedCount {
 public:
  static constexpr std::uint64_t kPause = 60'000'000'000; // ns

  /// What is to be told: by how much the count has grown since the last time. A count that fell has
  /// begun anew.
  std::optional<std::uint64_t> news(std::uint64_t count, std::uint64_t now_ns);

 private:
  std::uint64_t told_ = 0;
  std::optional<std::uint64_t> told_at_ns_;
};

/// Finds what has happened to rings between two looks at them. It asks nobody; who looks hands in
/// the snapshots.
class RingWatch {
 public:
  static constexpr std::uint64_t kLate = 10'000'000'000; // ns that a ring may wait for packets
  /// ns that hellos may wait for others. All ranks have met before, and are given an answer within
  /// 5 s where a job has several rings: by then the log names whom they lack.
  static constexpr std::uint64_t kHelloLate = 3'000'000'000;

  /// All rings of the set that are not withdrawn. `ports` by their places.
  std::vector<Event> look(const ring::RingSet& set, std::span<const stage::RingSnapshot> rings,
                          std::span<const PortLink> ports, std::uint64_t now_ns);

 private:
  struct Rank {
    PacedCount lost_from;
    PacedCount lost_to;
  };

  /// A child or the parent, as it was called when it was late.
  struct Sender {
    std::string ranks;       // as ring::name_of() has them
    std::string switch_name; // empty: a rank
    std::string port;        // of such a switch

    bool operator==(const Sender&) const = default;
  };

  /// Some senders keep the others waiting.
  struct Lateness {
    std::vector<Sender> senders;
    std::uint64_t since_ns = 0;
    bool is_told = false;
  };

  struct Remembered {
    std::optional<conn::Incarnation> incarnation;
    std::optional<Lateness> packets;
    std::optional<Lateness> hellos;
    std::vector<Rank> ranks;
    std::array<PacedCount, kDropReasons> drops;
  };

  struct Look; // at one ring

  static void look_at_job(Look& look);
  static void look_for_unpinned(Look& look);
  static void look_for_missing_operators(Look& look);
  static void look_for_missing_hellos(Look& look);
  static void look_for_stragglers(Look& look);
  static void look_for_losses(Look& look);
  static void look_for_drops(Look& look);

  std::map<std::uint32_t, Remembered> rings_; // by id
};

} // namespace weir::events
