// SPDX-License-Identifier: BSD-3-Clause

/// A manager whose store may be older than what its switches know: it waits until a person claims
/// the fabric.

#include "jobs/loop.hpp"
#include "jobs/records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace weir::jobs {
namespace {

constexpr Time kAskAgain = 5'000;
constexpr Time kHeardLately = 10'000; // of another manager: it lives
// More ids than managers give between a backup and its end. For each epoch, as the same backup may
// be restored again.
constexpr std::uint64_t kPassedIds = std::uint64_t{1} << 24;
constexpr std::uint64_t kEndOfRings = std::uint64_t{1} << 32;

} // namespace

void Loop::await_claim(const std::string& why, Time now) {
  if (!awaits_claim_.empty()) {
    return;
  }
  awaits_claim_ =
      fmt::format("{}; no orders are given until `weirctl fabric claim`, or `adopt`", why);
  outside_.note("awaits_claim", awaits_claim_);
  let_callers_go(awaits_claim_, now);
  for (SwitchState& state : switches_) {
    state.claim_at = now;
  }
}

/// By a term that none is below: nobody loses a switch by it.
void Loop::ask_who_leads(Time now) {
  if (is_over_ || is_lost_) {
    return;
  }
  for (SwitchIndex at = 0; at < switches_.size(); ++at) {
    SwitchState& state = switches_[at];
    const bool is_away = state.reach == Reach::unreached || state.reach == Reach::refused;
    if (!is_away || now < state.claim_at) {
      continue;
    }
    state.reach = Reach::claiming;
    v1::ClaimFabricRequest request;
    request.set_fabric(site_.fabric);
    request.set_manager(identity_.manager);
    write({.epoch = 0, .number = 0}, *request.mutable_term());
    outside_.claim(at, request);
  }
}

void Loop::note_holder(SwitchIndex at, const Outcome& outcome,
                       const v1::ClaimFabricResponse& answer, Time now) {
  SwitchState& state = switches_[at];
  state.reach = outcome.code == Code::no_answer ? Reach::unreached : Reach::refused;
  state.why = outcome.code == Code::ok ? "it waits for a manager" : outcome.words;
  state.claim_at = now + kAskAgain;
  state.has_told = true;
  if (outcome.code == Code::over) {
    state.holder = answer;
    state.held_at = now;
  }
}

/// Its rings would be taken from jobs that run.
void Loop::check_is_free(SwitchIndex at, Time now) const {
  const SwitchState& state = switches_[at];
  const bool is_ours = state.reach == Reach::claimed || state.reach == Reach::serving;
  if (!is_ours && !state.has_told) {
    throw Refused(Code::impossible,
                  fmt::format("{} has not said yet whom it obeys; allowed: a claim in {} s",
                              site_.name_of(at), kHeardLately / 1000));
  }
  const v1::ClaimFabricResponse& holder = state.holder;
  const Time silence = holder.holder_heard_ms() + (now - state.held_at);
  if (holder.has_holder_heard_ms() && silence < kHeardLately) {
    throw Refused(Code::impossible,
                  fmt::format("{} obeys {} with term {}.{}, heard {} s ago; allowed: a claim when "
                              "that manager has been stopped for {} s",
                              site_.name_of(at), holder.holder(), holder.highest().epoch(),
                              holder.highest().number(), silence / 1000, kHeardLately / 1000));
  }
}

v1::FabricRecord Loop::claimed_record(Time now) const {
  std::uint64_t known = std::max(identity_.term.epoch, fabric_.epoch());
  for (SwitchIndex at = 0; at < switches_.size(); ++at) {
    check_is_free(at, now);
    known = std::max(known, switches_[at].holder.highest().epoch());
  }
  const std::uint64_t free = kEndOfRings - std::min(fabric_.next_ring() + 1, kEndOfRings);
  const std::uint64_t later = known - fabric_.epoch();
  if (later >= free / kPassedIds) {
    throw Refused(Code::impossible,
                  fmt::format("ids of rings: a claim passes {} for each epoch from {} on, the "
                              "highest that is known is {}, and {} ids are free; allowed: another "
                              "name for the fabric, with an empty store",
                              kPassedIds, fabric_.epoch(), known, free));
  }
  const std::uint64_t epochs = later + 1;
  v1::FabricRecord next = fabric_;
  next.set_epoch(fabric_.epoch() + epochs);
  next.set_next_ring(fabric_.next_ring() + epochs * kPassedIds);
  next.set_next_job(fabric_.next_job() + epochs * kPassedIds);
  next.set_next_allocation(fabric_.next_allocation() + epochs * kPassedIds);
  return next;
}

/// Who may know a later epoch, and a ring that is not to be found again.
std::vector<std::string> Loop::unheard() const {
  std::vector<std::string> names;
  for (SwitchIndex at = 0; at < switches_.size(); ++at) {
    const Reach reach = switches_[at].reach;
    if (reach == Reach::unreached || reach == Reach::claiming) {
      names.push_back(site_.name_of(at));
    }
  }
  return names;
}

void Loop::require_claimable() const {
  if (is_over_ || is_lost_) {
    throw Refused(Code::unavailable, fmt::format("{}; allowed: a claim at a manager that leads",
                                                 is_over_ ? "the manager ends" : doubt()));
  }
}

v1::ClaimResponse Loop::claim(const Caller& caller, Time now) {
  require_operator(caller);
  require_claimable();
  v1::FabricRecord next = claimed_record(now);
  next.clear_adopts();
  next.clear_adopts_without();
  return take_fabric(caller, next);
}

v1::ClaimResponse Loop::take_fabric(const Caller& caller, const v1::FabricRecord& next) {
  if (!commit({{kFabricKey, next.SerializeAsString()}})) {
    throw Refused(Code::unavailable, "the manager's store does not answer; claim once more");
  }
  is_over_ = true;
  outside_.begin_again(fmt::format("{} has claimed the fabric: epoch {}, rings from {}, jobs from "
                                   "{}",
                                   caller.name.empty() ? "root" : caller.name, next.epoch(),
                                   next.next_ring(), next.next_job()));
  return claim_response(next, unheard());
}

v1::ClaimResponse Loop::claim_response(const v1::FabricRecord& next,
                                       const std::vector<std::string>& unheard) {
  v1::ClaimResponse response;
  response.set_epoch(next.epoch());
  response.set_next_ring(next.next_ring());
  response.set_next_job(next.next_job());
  response.mutable_unheard()->Add(unheard.begin(), unheard.end());
  return response;
}

} // namespace weir::jobs
