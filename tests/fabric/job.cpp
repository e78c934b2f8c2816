// SPDX-License-Identifier: BSD-3-Clause
#include "job.hpp"

#include "violation.hpp"

#include <algorithm>
#include <utility>

namespace weir::fabric {
namespace {

constexpr Time kStartSpread = 3; // ACK timeouts between the first member's start and the last's
constexpr Time kGrace = 4;       // ACK timeouts after which a fault is no excuse any more

std::string_view name_of(Job::State state) {
  switch (state) {
  case Job::State::starting:
    return "starts";
  case Job::State::running:
    return "runs";
  case Job::State::failing:
    return "goes down";
  case Job::State::finished:
    return "is finished";
  case Job::State::abandoned:
    return "is abandoned";
  }
  return "?";
}

} // namespace

Job::Job(const Member::Shared& shared, const RingPlan& plan, std::uint16_t ring,
         const std::vector<HostState>& hosts, QueuePairNumbers& numbers)
    : shared_(shared), plan_(plan), ring_(ring), hosts_(hosts), numbers_(numbers),
      members_(plan.hosts.size()), former_(plan.hosts.size()), generations_(plan.hosts.size()),
      next_epoch_(plan.first_epoch) {}

void Job::schedule_epoch(Time time) {
  shared_.world.events.push({.time = time, .kind = EventKind::start_epoch, .place = ring_});
}

bool Job::hosts_are_ready() const {
  return std::all_of(plan_.hosts.begin(), plan_.hosts.end(), [this](std::uint16_t host) {
    return hosts_[host].is_alive && hosts_[host].frozen_until <= shared_.world.now;
  });
}

Seat Job::draw_seat(const Seat* old) {
  constexpr std::uint32_t past_last_psn = 1u << 24;
  Dice& dice = shared_.world.dice;
  const auto psn = [&](std::uint32_t old_psn) {
    if (old != nullptr && plan_.psns == FirstPsns::again) {
      return old_psn;
    }
    if (old != nullptr) { // far from anything that a stopped host may still hold
      return (old_psn + (1u << 22)) % past_last_psn;
    }
    const bool is_near_wrap = dice.chance(plan_.near_wrap);
    return is_near_wrap ? past_last_psn - 1 - static_cast<std::uint32_t>(dice.below(12))
                        : static_cast<std::uint32_t>(dice.below(past_last_psn));
  };
  Seat seat;
  seat.outgoing_qp = old != nullptr ? old->outgoing_qp : numbers_.draw(dice);
  seat.incoming_qp = old != nullptr ? old->incoming_qp : numbers_.draw(dice);
  seat.outgoing_psn = psn(old != nullptr ? old->outgoing_psn : 0);
  seat.incoming_psn = psn(old != nullptr ? old->incoming_psn : 0);
  seat.inbox_key = static_cast<std::uint32_t>(dice.next());
  seat.inbox_base = dice.below(1u << 30) << 12;
  return seat;
}

/// Usually a larger one. Often the same, because clocks count seconds. Sometimes a smaller one, as
/// by an operator's error; the switch rejects it.
std::uint32_t Job::draw_epoch() {
  const bool is_first = run_ == nullptr;
  Dice& dice = shared_.world.dice;
  if (is_first || dice.chance(60 * kPercent)) {
    return next_epoch_++;
  }
  const bool is_mistaken =
      dice.chance(15 * kPercent) && shared_.world.now < shared_.scenario.faults_end;
  return is_mistaken && run_->epoch > 1 ? run_->epoch - 1 : next_epoch_ - 1;
}

void Job::start_epoch() {
  World& world = shared_.world;
  if (!hosts_are_ready()) {
    return schedule_epoch(world.now + shared_.scenario.ack_timeout);
  }
  const bool reuses = run_ != nullptr && world.dice.chance(plan_.reuse);
  const std::uint32_t nonce = world.draw_nonce();
  auto run = std::make_unique<JobRun>(
      JobRun{plan_, ring_, ++generation_, draw_epoch(), nonce, ExpectedResults(plan_, nonce)});
  for (std::size_t rank = 0; rank < plan_.hosts.size(); ++rank) {
    run->seats.push_back(draw_seat(reuses ? &run_->seats[rank] : nullptr));
  }
  if (run_ != nullptr) {
    old_runs_.push_back(std::move(run_));
  }
  run_ = std::move(run);
  if (reuses) { // the old queue pairs are gone, and so are their packets (IBTA §12.9.8.4.1)
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
      members_[rank].reset();
      former_[rank].reset();
    }
  }
  state_ = State::starting;
  is_excused_ = run_->epoch + 1 < next_epoch_;
  has_begun_ = 0;
  shared_.coverage.hit(Happening::epochs_started);
  if (plan_.is_made) {
    shared_.fabric.make_ring(ring_, nonce);
  }
  shared_.fabric.expect_epoch(ring_, generation_);
  shared_.fabric.expect_run(*run_);
  world.tell("ring {} starts epoch {} nonce {:#x}", plan_.spec.id, run_->epoch, run_->nonce);
  const Time patience = plan_.spec.patience_ms * kMillisecond;
  const Time spread = std::max(kStartSpread, plan_.lateness) * shared_.scenario.ack_timeout;
  const Time first = world.now + (reuses ? shared_.scenario.round_trip + patience : 0);
  for (std::uint16_t rank = 0; rank < plan_.hosts.size(); ++rank) {
    world.events.push({.time = first + world.dice.below(spread),
                       .kind = EventKind::start_member,
                       .place = ring_,
                       .rank = rank,
                       .generation = generation_});
  }
}

void Job::start_member(std::uint16_t rank, std::uint32_t generation) {
  if (generation != generation_ || state_ == State::failing || state_ == State::abandoned) {
    return;
  }
  if (!hosts_[plan_.hosts[rank]].is_alive) {
    return fail("a host died before its member started");
  }
  shared_.world.tell("ring {} rank {} starts", plan_.spec.id, rank);
  let_former_go_on(rank);
  members_[rank] = std::make_unique<Member>(shared_, *run_, rank);
  generations_[rank] = generation;
  const bool all_started =
      std::all_of(generations_.begin(), generations_.end(),
                  [&](std::uint32_t started) { return started == generation; });
  if (all_started) {
    state_ = State::running;
  }
  members_[rank]->pump();
}

/// A rank that works is another job from now on, which shares the ring by an operator's error.
void Job::let_former_go_on(std::uint16_t rank) {
  if (members_[rank] != nullptr && members_[rank]->state() == Member::State::working) {
    former_[rank] = std::move(members_[rank]);
  }
}

void Job::review_former() {
  for (auto& member : former_) {
    if (member != nullptr && member->state() == Member::State::failed) {
      shared_.coverage.add(Row::told_of_another, member->was_told_of_another() ? 1 : 0);
      member.reset();
    }
  }
}

void Job::stop_member(std::uint16_t rank, std::uint32_t generation) {
  if (generations_[rank] == generation) {
    members_[rank].reset();
  }
}

void Job::host_died(std::uint16_t host) {
  if (std::ranges::find(plan_.hosts, host) != plan_.hosts.end()) {
    note_calls(CallEvent::death);
  }
  bool is_ours = false;
  for (std::size_t rank = 0; rank < plan_.hosts.size(); ++rank) {
    if (plan_.hosts[rank] == host) {
      members_[rank].reset();
      former_[rank].reset();
      is_ours = true;
    }
  }
  if (is_ours && (state_ == State::starting || state_ == State::running)) {
    excuse();
    fail(fmt::format("host {} died", host));
  }
}

void Job::kill_member(std::uint16_t rank) {
  if (state_ != State::starting && state_ != State::running) {
    return;
  }
  note_calls(CallEvent::death);
  members_[rank].reset();
  excuse();
  shared_.coverage.hit(Happening::members_killed);
  fail(fmt::format("rank {} was killed", rank));
  if (shared_.world.dice.chance(50 * kPercent)) {
    start_epoch();
  }
}

void Job::notice_incarnation(std::uint16_t node, std::uint32_t nonce) {
  if (plan_.is_made && nonce != 0 && run_ != nullptr && nonce != run_->nonce) {
    throw Violation("I11", fmt::format("ring {} was made for the run {:#x}, and {:#x} began",
                                       plan_.spec.id, run_->nonce, nonce));
  }
  if (run_ == nullptr) {
    return;
  }
  const std::uint64_t own = std::uint64_t{1} << node;
  if (nonce == run_->nonce) {
    has_begun_ |= own;
  } else if ((has_begun_ & own) != 0) {
    shared_.coverage.add(Happening::dead_runs_begun, nonce == 0 ? 0 : 1);
    has_begun_ &= ~own;
    excuse();
  }
}

void Job::note_calls(CallEvent event) const {
  for (const auto& member : members_) {
    if (member != nullptr) {
      member->note_calls(event);
    }
  }
}

bool Job::shares_links_with(const Job& other) const {
  return std::ranges::find_first_of(plan_.hosts, other.plan_.hosts) != plan_.hosts.end();
}

void Job::stall_member(std::uint16_t rank, Time until) {
  if (members_[rank] != nullptr) {
    note_calls(CallEvent::straggler);
    members_[rank]->stall_until(until);
  }
}

Member* Job::member(std::uint16_t rank, std::uint32_t generation) {
  if (former_[rank] != nullptr && former_[rank]->generation() == generation) {
    return former_[rank].get();
  }
  return generations_[rank] == generation ? members_[rank].get() : nullptr;
}

Member* Job::member_with(std::uint16_t host, std::uint32_t queue_pair) {
  for (const auto* const members : {&members_, &former_}) {
    for (const auto& member : *members) {
      if (member != nullptr && member->host() == host && member->owns(queue_pair)) {
        return member.get();
      }
    }
  }
  return nullptr;
}

void Job::review() {
  review_former();
  if (state_ != State::starting && state_ != State::running) {
    return;
  }
  std::size_t finished = 0;
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    if (members_[rank] == nullptr || generations_[rank] != generation_) {
      continue;
    }
    if (members_[rank]->state() == Member::State::failed) {
      return fail(members_[rank]->failure());
    }
    finished += members_[rank]->state() == Member::State::finished ? 1 : 0;
  }
  if (finished == members_.size()) {
    finish();
  }
}

/// Only where queue pairs are used again: others' answers have other PSNs.
bool Job::has_lost_answer() const {
  return plan_.reuse != 0 && std::ranges::any_of(members_, [](const auto& member) {
           return member != nullptr && member->has_lost_answer();
         });
}

void Job::fail(const std::string& cause) {
  World& world = shared_.world;
  const Time timeout = shared_.scenario.ack_timeout;
  const bool was_misled =
      shared_.fabric.was_misled(ring_) || shared_.fabric.was_cut_short(ring_) || has_lost_answer();
  const bool is_late = world.now > shared_.scenario.faults_end + kGrace * timeout;
  if (plan_.role == RingRole::sound && is_late && !is_excused_ && !was_misled) {
    throw Violation("I3", fmt::format("ring {} epoch {} failed ({}) though the faults were over;{}",
                                      plan_.spec.id, run_->epoch, cause,
                                      shared_.fabric.waiting_of(ring_)));
  }
  shared_.coverage.hit(Happening::jobs_failed);
  note_attacked(Row::attacked_failed);
  shared_.coverage.add(Happening::jobs_misled, was_misled ? 1 : 0);
  world.tell("ring {} fails: {}", plan_.spec.id, cause);
  last_failure_ = cause;
  if (plan_.role == RingRole::doomed) {
    state_ = State::abandoned;
    ended_at_ = world.now;
    shared_.coverage.add(Row::calls_disputed, plan_.dispute ? 1 : 0);
    return;
  }
  state_ = State::failing;
  for (std::uint16_t rank = 0; rank < members_.size(); ++rank) {
    world.events.push({.time = world.now + world.dice.below(3 * timeout),
                       .kind = EventKind::stop_member,
                       .place = ring_,
                       .rank = rank,
                       .generation = generation_});
  }
  schedule_epoch(world.now + world.dice.below(5 * timeout) + 1);
}

/// docs/protocol.md §11: without loss an uplink carries each packet once. Where uplinks alone lose
/// packets, and no acknowledgements, no rank repeats anything.
void Job::check_quest() const {
  const Quest quest = shared_.scenario.quest;
  if (quest == Quest::anything || !plan_.tree.has_several_switches()) {
    return;
  }
  std::uint64_t repeats = 0;
  for (const auto& member : members_) {
    repeats += member->repeats();
  }
  if (quest == Quest::lossy_uplinks) {
    if (repeats != 0 && !shared_.fabric.may_make_ranks_repeat(ring_)) {
      throw Violation("I10", fmt::format("ring {}: ranks have repeated {} packets, though only "
                                         "links between switches lost some",
                                         plan_.spec.id, repeats));
    }
    return shared_.coverage.add(Row::tree_lossy_uplinks, repeats == 0 ? 1 : 0);
  }
  shared_.fabric.check_uplinks(ring_, run_->expected.packets() - 1);
  shared_.coverage.hit(Row::tree_no_loss);
}

void Job::note_attacked(Row row) const {
  const bool is_attacked = plan_.role == RingRole::victim && shared_.scenario.rogue_acts != 0;
  shared_.coverage.add(row, is_attacked && plan_.tree.has_several_switches() ? 1 : 0);
}

void Job::finish() {
  World& world = shared_.world;
  check_quest();
  state_ = State::finished;
  ended_at_ = world.now;
  ++jobs_done_;
  shared_.coverage.hit(Happening::jobs_finished);
  note_attacked(Row::attacked_finished);
  world.tell("ring {} has finished epoch {}", plan_.spec.id, run_->epoch);
  if (jobs_done_ < plan_.jobs) {
    state_ = State::failing; // stops and starts again
    schedule_epoch(world.now + world.dice.below(3 * shared_.scenario.ack_timeout) + 1);
  }
}

std::string Job::describe() const {
  std::string text =
      fmt::format("ring {} epoch {} {}", plan_.spec.id,
                  run_ == nullptr ? plan_.first_epoch : run_->epoch, name_of(state_));
  for (const auto& member : members_) {
    text += "\n    " + (member == nullptr ? "a member that is not there" : member->describe());
  }
  if (!last_failure_.empty()) {
    text += "\n    failed last: " + last_failure_;
  }
  return text;
}

} // namespace weir::fabric
