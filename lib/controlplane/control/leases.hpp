// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// When a ring that nobody uses is reclaimed, and why. No threads, no clock, no EAL.

#include "stage/ring_life.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Name, meaning, and what the log says; {0} there stands for the seconds of silence.
// clang-format off
#define WEIR_RECLAIM_REASONS(X)                                                                                         \
  X(lease,   "no member sent a packet for as long as the ring's lease", "its members were silent for {0} s")            \
  X(drained, "the ring was to drain, and its members were silent for long enough",                                      \
    "it was drained, and its members were silent for {0} s")                                                            \
  X(owner_gone, "the call that held the ring has ended", "its owner's call HoldRing has ended")

// clang-format on

namespace weir::control {

#define WEIR_ENUMERATOR(name, text, said) name,

/// Why the switch took back what a ring had.
enum class ReclaimReason : std::uint8_t { WEIR_RECLAIM_REASONS(WEIR_ENUMERATOR) count };

#undef WEIR_ENUMERATOR

inline constexpr std::size_t kReclaimReasons = static_cast<std::size_t>(ReclaimReason::count);

std::string_view name_of(ReclaimReason reason);
std::string_view text_of(ReclaimReason reason);

/// Of the members of a ring that drains, until it is withdrawn.
inline constexpr std::chrono::seconds kDefaultQuiet{10};
inline constexpr std::chrono::seconds kLongestQuiet{86'400};
inline constexpr std::string_view kAllowedQuiet = "1 .. 86400 seconds of silence";

constexpr bool is_allowed_quiet(std::chrono::seconds quiet) {
  return quiet.count() >= 1 && quiet <= kLongestQuiet;
}

/// Where a ring comes from.
enum class Origin : std::uint8_t { configuration, run_time };

/// What keeps a ring that does not drain.
enum class Keeper : std::uint8_t {
  members, // they are heard now and then
  owner,   // its call is open
};

/// What control knows about a ring beside its specification.
struct RingCare {
  Origin origin = Origin::configuration;
  ring::RingBirth birth = 0; // 0: it is configured
  Keeper keeper = Keeper::members;
  std::optional<std::uint64_t> quiet_ms; // silence after which it is withdrawn once it drains
};

/// A ring as it is looked at.
struct TendedRing {
  ring::RingSpec spec;
  RingCare care;
  stage::RingLife life;
};

/// All rings as they are looked at.
struct TendedRings {
  std::uint64_t now_ns = 0; // of the switch's clock
  std::vector<TendedRing> rings;
};

/// What becomes of a ring that is reclaimed.
enum class Fate : std::uint8_t {
  withdrawn,
  reset, // it is configured: new hellos start it anew
};

std::string_view name_of(Fate fate);

Fate fate_of(const TendedRing& ring);

/// From when on silence counts. A switch that did not run, because its machine slept or had no CPU
/// for it, has heard nobody; that is not the members' silence.
class Listening {
 public:
  /// Between two looks; more, and the switch did not run.
  static constexpr std::uint64_t kLongestPauseNs = 10'000'000'000;

  void look(std::uint64_t now_ns);

  std::uint64_t since_ns() const { return since_ns_; }

 private:
  std::optional<std::uint64_t> last_look_ns_;
  std::uint64_t since_ns_ = 0;
};

struct Grounds {
  ReclaimReason reason{};
  std::uint64_t silence_ns = 0; // of all members
};

/// Whether a ring, as it is at that moment, is to be reclaimed.
using ReclaimJudge = std::function<std::optional<Grounds>(const TendedRing&, std::uint64_t now_ns)>;

/// Why the ring is to be reclaimed now; none: it is not. A configured ring that holds nothing has
/// nothing to give back.
std::optional<Grounds> grounds_to_reclaim(const TendedRing& ring, const Listening& listening,
                                          std::uint64_t now_ns);

/// A ring that was reclaimed.
struct Reclaimed {
  std::uint32_t ring = 0;    // id
  std::uint64_t time_ns = 0; // since 1970 (UTC)
  Grounds grounds;
  Fate fate{};
  std::uint64_t frames = 0; // that it held
};

/// "ring 17: reclaimed: …", a sentence for the log.
std::string sentence_of(const Reclaimed& reclaimed);

/// The rings that were reclaimed last, and how many for each reason. Any thread may use it.
class ReclaimLog {
 public:
  static constexpr std::size_t kKept = 64;
  using Counts = std::array<std::uint64_t, kReclaimReasons>;

  /// Calls `tell` too.
  void note(const Reclaimed& reclaimed);

  /// Whom note() calls, on its thread. To be set before other threads use the log.
  void tell_to(std::function<void(const Reclaimed&)> tell) { tell_ = std::move(tell); }

  /// Oldest first.
  std::vector<Reclaimed> last() const;
  /// By reason.
  Counts counts() const;

 private:
  mutable std::mutex mutex_;
  std::deque<Reclaimed> last_;
  Counts counts_{};
  std::function<void(const Reclaimed&)> tell_;
};

} // namespace weir::control
