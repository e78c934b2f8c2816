// SPDX-License-Identifier: BSD-3-Clause
#include "control/leases.hpp"

#include "frame/instant.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir::control {
namespace {

struct ReasonRow {
  std::string_view name;
  std::string_view text;
  std::string_view said;
};

#define WEIR_ROW(name, text, said) ReasonRow{#name, text, said},
constexpr std::array<ReasonRow, kReclaimReasons> kReasons{{WEIR_RECLAIM_REASONS(WEIR_ROW)}};
#undef WEIR_ROW

bool is_drained(const TendedRing& ring, std::uint64_t silence_ns, std::uint64_t now_ns) {
  const stage::RingLife& life = ring.life;
  if (!life.draining_since_ns || !ring.care.quiet_ms || life.filling != 0) {
    return false;
  }
  return std::min(silence_ns, frame::elapsed_ns(*life.draining_since_ns, now_ns)) >=
         *ring.care.quiet_ms * frame::kNsPerMs;
}

bool has_what_can_be_given_back(const TendedRing& ring) {
  return fate_of(ring) == Fate::withdrawn || ring.life.has_incarnation || ring.life.held != 0;
}

} // namespace

std::string_view name_of(ReclaimReason reason) {
  return kReasons[static_cast<std::size_t>(reason)].name;
}

std::string_view text_of(ReclaimReason reason) {
  return kReasons[static_cast<std::size_t>(reason)].text;
}

std::string_view name_of(Fate fate) {
  return fate == Fate::withdrawn ? "withdrawn" : "reset";
}

Fate fate_of(const TendedRing& ring) {
  const bool is_to_go = ring.care.origin == Origin::run_time || ring.life.draining_since_ns;
  return is_to_go ? Fate::withdrawn : Fate::reset;
}

void Listening::look(std::uint64_t now_ns) {
  if (!last_look_ns_ || frame::elapsed_ns(*last_look_ns_, now_ns) > kLongestPauseNs) {
    since_ns_ = now_ns;
  }
  last_look_ns_ = now_ns;
}

std::optional<Grounds> grounds_to_reclaim(const TendedRing& ring, const Listening& listening,
                                          std::uint64_t now_ns) {
  const std::uint64_t silence =
      frame::elapsed_ns(std::max(ring.life.heard_ns, listening.since_ns()), now_ns);
  if (is_drained(ring, silence, now_ns)) {
    return Grounds{ReclaimReason::drained, silence};
  }
  const bool has_run_out =
      ring.care.keeper == Keeper::members && silence >= ring.spec.lease_ms * frame::kNsPerMs;
  return has_run_out && has_what_can_be_given_back(ring)
             ? std::optional(Grounds{ReclaimReason::lease, silence})
             : std::nullopt;
}

std::string sentence_of(const Reclaimed& reclaimed) {
  constexpr std::uint64_t ns_per_s = 1'000'000'000;
  const Grounds& grounds = reclaimed.grounds;
  const std::string_view said = kReasons[static_cast<std::size_t>(grounds.reason)].said;
  const std::string_view fate =
      reclaimed.fate == Fate::reset ? "; it is configured: new hellos start it anew" : "";
  return fmt::format("ring {}: reclaimed: {}; {} frames given back{}", reclaimed.ring,
                     fmt::format(fmt::runtime(said), grounds.silence_ns / ns_per_s),
                     reclaimed.frames, fate);
}

void ReclaimLog::note(const Reclaimed& reclaimed) {
  {
    const std::lock_guard lock(mutex_);
    ++counts_[static_cast<std::size_t>(reclaimed.grounds.reason)];
    last_.push_back(reclaimed);
    if (last_.size() > kKept) {
      last_.pop_front();
    }
  }
  if (tell_) {
    tell_(reclaimed);
  }
}

std::vector<Reclaimed> ReclaimLog::last() const {
  const std::lock_guard lock(mutex_);
  return {last_.begin(), last_.end()};
}

ReclaimLog::Counts ReclaimLog::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

} // namespace weir::control
