// SPDX-License-Identifier: BSD-3-Clause
#include "stage/timers.hpp"

#include "stage/pipeline.hpp"
#include "wire/parse.hpp"

#include <algorithm>

namespace weir::stage {

using ring::RingChild;

namespace {

constexpr std::uint64_t kNever = Schedule::kNever;

} // namespace

Timers::Timers(Pipeline& pipeline)
    : current_(pipeline.state.current), incarnations_(pipeline.state.incarnations),
      rings_(pipeline.state.rings), schedule_(pipeline.state.schedule), recover_(pipeline.recover),
      climb_(pipeline.climb), classify_(pipeline.classify), region_(pipeline.region) {}

void Timers::poll(frame::Instant now) {
  if (now.ns < schedule_.next()) [[likely]] {
    return;
  }
  schedule_.poll(now.ns, [&](std::uint16_t ring) {
    const std::uint64_t due = poll_ring(ring, now);
    return due == kNever ? due : std::max(due, now.ns + recovery::kTimerGranularity);
  });
  recover_.resend_some(now);
  region_.poll(now);
}

void Timers::expect_hello(const RingChild& sender, frame::Instant now) {
  conn::WaitingHello& hello = incarnations_.waiting_hellos_of(sender.ring).newest_of(sender.child);
  hello.arrived_ns = hello.kept_alive_ns = now.ns;
  schedule_.expect(sender.ring, now.ns + recovery::keep_alive_interval(1));
}

/// Returns when the ring is due again.
std::uint64_t Timers::poll_ring(std::uint16_t ring, frame::Instant now) {
  if (incarnations_.has_failing_operator(ring)) [[unlikely]] {
    classify_.end_disagreeing(ring, now);
  }
  const std::uint64_t of_hellos = poll_hellos(ring, now);
  return std::min(of_hellos, poll_children(ring, now));
}

std::uint64_t Timers::poll_hellos(std::uint16_t index, frame::Instant now) {
  const ring::RingSpec& spec = current_->rings()[index].spec();
  conn::WaitingHellos& hellos = incarnations_.waiting_hellos_of(index);
  if (hellos.size() == 0 || recover_.is_cut_off(index)) {
    return kNever;
  }
  std::uint64_t next = rings_[index]->is_root ? kNever : climb_.send_again(index, now);
  if (spec.keep_alive == ring::KeepAlive::off) {
    return next;
  }
  for (std::uint16_t child = 0; child < current_->rings()[index].children(); ++child) {
    for (conn::WaitingHello& hello : hellos.of(child)) {
      if (hello.frame == nullptr || hello.claim == 0 ||
          !incarnations_.is_awaited({index, child}, hello)) {
        continue;
      }
      const std::uint8_t ack_timeout = wire::find_ina_header(*hello.frame)->ack_timeout;
      const std::uint64_t waited = now.ns - hello.arrived_ns;
      if (ack_timeout == 0 || waited > spec.patience_ms * frame::kNsPerMs) {
        continue;
      }
      const std::uint64_t interval = recovery::keep_alive_interval(ack_timeout);
      if (now.ns >= hello.kept_alive_ns + interval) {
        hello.kept_alive_ns = now.ns;
        if (incarnations_.is_sole_claim(hello.claim)) {
          recover_.keep_alive({index, child}, hello, {spec.keep_alive, waited}, now);
        }
      }
      next = std::min(next, hello.kept_alive_ns + interval);
    }
  }
  return next;
}

std::uint64_t Timers::poll_children(std::uint16_t index, frame::Instant now) {
  if (!incarnations_.incarnation_of(index) || !recover_.is_patient(index, now)) {
    return kNever;
  }
  const std::optional<Stall> stall = rings_[index]->stall();
  const std::uint64_t timer = stall ? longest_timer(index) : 0;
  std::uint64_t next = kNever;
  for (std::uint16_t sender = 0; sender < current_->rings()[index].senders(); ++sender) {
    const recovery::Flow& flow = incarnations_.flow_of({index, sender});
    if (flow.is_live && flow.own_qp != 0) {
      next = std::min(next, poll_sender({index, sender}, stall, timer, now));
    }
  }
  return next;
}

/// `stall` is of the oldest slot that waits for children, and `timer` how long it may.
std::uint64_t Timers::poll_sender(const RingChild& sender, const std::optional<Stall>& stall,
                                  std::uint64_t timer, frame::Instant now) {
  recovery::Flow& flow = incarnations_.flow_of(sender);
  const ring::Ring& ring = current_->rings()[sender.ring];
  std::uint64_t next = kNever;
  // What is due and may not be said now, because somebody lies, will hardly be allowed soon; or
  // because a is too old: an acknowledgement tells.
  const auto expect = [&](std::uint64_t due) {
    flow.is_silenced = flow.is_silenced || due <= now.ns;
    next = std::min(next, due > now.ns ? due : now.ns + recovery::kRnrWait);
  };
  if (stall && !ring.is_parent(sender.child) &&
      !rings_[sender.ring]->slots.has(stall->slot, sender.child)) {
    expect(ask_late(sender, *stall, timer, now));
  }
  if (ring.is_parent(sender.child) && flow.lacks_packets()) {
    expect(ask_late(sender, {.since_ns = flow.asked_at}, flow.timer(), now));
  }
  if (flow.is_outstanding()) {
    expect(answer_later(sender, now));
    expect(resend_overdue(sender, now));
  } else if (const auto awaited = awaited_by(sender)) {
    expect(keep_alive(sender, *awaited, now));
  }
  return next;
}

/// The slot whose result the sender waits for, if nothing of it is under way (§10): the oldest one
/// that has its packet and is not complete, or not sent where the packet goes up. The switch above
/// waits for nobody.
std::optional<Stall> Timers::awaited_by(const RingChild& sender) const {
  const RingState& ring = *rings_[sender.ring];
  const ring::Leg leg = current_->rings()[sender.ring].leg_of(sender.child);
  if (leg == ring::Leg::entering) {
    return std::nullopt;
  }
  const auto oldest = ring.is_root || leg == ring::Leg::outgoing ? ring.stall() : ring.unfinished();
  return oldest && ring.slots.has(oldest->slot, sender.child) ? oldest : std::nullopt;
}

std::uint64_t Timers::longest_timer(std::uint16_t index) const {
  std::uint64_t longest = 0;
  for (std::uint16_t sender = 0; sender < current_->rings()[index].senders(); ++sender) {
    const recovery::Flow& flow = incarnations_.flow_of({index, sender});
    longest = std::max(longest, flow.is_measured() ? flow.timer() : 0);
  }
  return longest == 0 ? recovery::kFirstTimer : longest;
}

/// The child's packet is all that the oldest slot waits for, or one of few (R5).
std::uint64_t Timers::ask_late(const RingChild& sender, const Stall& stall, std::uint64_t timer,
                               frame::Instant now) {
  const recovery::Flow& flow = incarnations_.flow_of(sender);
  const auto due = [&] {
    return std::max({stall.since_ns + timer, flow.heard_at + timer, flow.hushed_until,
                     recover_.may_ask_at(sender)});
  };
  if (now.ns >= due()) {
    recover_.ask(sender, now);
  }
  return due();
}

std::uint64_t Timers::resend_overdue(const RingChild& sender, frame::Instant now) {
  // Only the switch above knows what is late: it waits for other racks.
  if (current_->rings()[sender.ring].leg_of(sender.child) == ring::Leg::outgoing) {
    return kNever;
  }
  const recovery::Flow& flow = incarnations_.flow_of(sender);
  const auto due = [&] {
    return flow.resends == recovery::kMostResends || flow.is_resending
               ? kNever
               : std::max(flow.progress_at + flow.timer(), flow.hushed_until);
  };
  if (now.ns >= due() && recover_.may_speak(sender, now)) {
    recover_.resend_late(sender, now);
  }
  return due();
}

/// Somebody has wanted results again too soon (R3, R4).
std::uint64_t Timers::answer_later(const RingChild& sender, frame::Instant now) {
  const recovery::Flow& flow = incarnations_.flow_of(sender);
  const auto due = [&] {
    return flow.is_answer_due ? std::max(recover_.may_answer_at(sender), flow.held_until) : kNever;
  };
  if (now.ns >= due()) {
    recover_.answer(sender, now);
  }
  return due();
}

std::uint64_t Timers::keep_alive(const RingChild& sender, const Stall& stall, frame::Instant now) {
  const ring::KeepAlive mode = current_->rings()[sender.ring].spec().keep_alive;
  const recovery::Flow& flow = incarnations_.flow_of(sender);
  if (mode == ring::KeepAlive::off || flow.ack_timeout == 0) {
    return kNever;
  }
  if (now.ns >= flow.keep_alive_at() && recover_.may_speak(sender, now)) {
    recover_.keep_alive(sender, {mode, now.ns - stall.since_ns}, now);
  }
  return flow.keep_alive_at();
}

} // namespace weir::stage
