// SPDX-License-Identifier: BSD-3-Clause
#include "stage/recover.hpp"

#include "stage/graph_watch.hpp"
#include "stage/pipeline.hpp"
#include "wire/icrc.hpp"
#include "wire/parse.hpp"
#include "wire/syndrome.hpp"

#include <algorithm>
#include <cassert>

namespace weir::stage {

using recovery::ResultTemplate;
using ring::RingChild;

namespace {

constexpr std::uint8_t kAck = wire::ack_syndrome(wire::kAckUnlimited);
constexpr std::uint8_t kNak = wire::nak_syndrome(wire::NakCode::sequence_error);
constexpr std::uint64_t kTellPause = recovery::kFirstTimer; // a window of packets is told once
constexpr std::uint8_t kAskAgain = wire::rnr_syndrome(1);   // 10 us

/// Whether the PSN is less than a window before or behind the other.
bool is_near(std::uint32_t psn, std::uint32_t other, std::size_t window) {
  const std::int64_t ahead = wire::psn_distance(psn, other);
  const auto reach = static_cast<std::int64_t>(window);
  return ahead >= -reach && ahead < reach;
}

/// The RNR timer code with the longest wait that is not above `ns` (IBTA table 45).
std::uint8_t rnr_code_within(std::uint64_t ns) {
  std::uint8_t code = 1;
  for (std::uint8_t longer = 2; longer <= wire::kSyndromeValueMask; ++longer) {
    if (wire::rnr_wait(longer) <= std::chrono::nanoseconds(ns)) {
      code = longer;
    }
  }
  return code;
}

/// The PSN below which it acknowledges all. nullopt: it ends the queue pair.
std::optional<std::uint32_t> acknowledged_below(const frame::Frame& frame, const wire::Aeth& aeth) {
  switch (wire::kind_of(aeth.syndrome)) {
  case wire::SyndromeKind::acknowledge:
    return wire::psn_add(frame.packet.psn, 1);
  case wire::SyndromeKind::rnr:
    return frame.packet.psn;
  case wire::SyndromeKind::nak:
    return aeth.syndrome == kNak ? std::optional(frame.packet.psn) : std::nullopt;
  case wire::SyndromeKind::reserved:
    break;
  }
  return std::nullopt;
}

frame::TraceEvent event_of(std::uint8_t syndrome) {
  switch (syndrome) {
  case kAck:
    return frame::TraceEvent::acknowledged;
  case wire::nak_syndrome(kTakenOver):
  case wire::nak_syndrome(kGivenUp):
  case wire::nak_syndrome(kDisagreed):
    return frame::TraceEvent::told;
  default:
    return frame::TraceEvent::asked;
  }
}

std::uint8_t syndrome_for(const Recover::Wait& wait) {
  return wait.keep_alive == ring::KeepAlive::rnr ? wire::rnr_syndrome(rnr_code_within(wait.ns / 8))
                                                 : kAck;
}

} // namespace

Recover::Recover(Pipeline& pipeline)
    : current_(pipeline.state.current), ports_down_(pipeline.state.ports_down),
      incarnations_(pipeline.state.incarnations), rings_(pipeline.state.rings),
      schedule_(pipeline.state.schedule), lines_(pipeline.state.lines),
      farewells_(pipeline.state.farewells), forward_(pipeline.state.forward),
      turns_(rings_.size()) {}

void Recover::begin(const RingChild& sender, const frame::Frame& hello, frame::Instant now) {
  RingState& ring = *rings_[sender.ring];
  const wire::InaHeader& ina = *wire::find_ina_header(hello);
  farewells_.forget(conn::queue_pair_of(hello));
  ring.answers[sender.child] =
      recovery::AnswerTemplate(hello, incarnations_.flow_of(sender).own_qp);
  ring.results[sender.child] = ResultTemplate(hello, ina);
  ring.news_at_ns = now.ns;
}

void Recover::end(std::uint16_t index) {
  RingState& ring = *rings_[index];
  ring.due = {};
  ring.total_due = {};
  ring.sum_timer = {};
  ring.gaps = 0;
  ring.resending.clear();
}

void Recover::came_out_of_order(const RingChild& sender, std::uint32_t psn, frame::Instant now) {
  advance(sender, psn);
  note_gap(sender, psn, now);
}

/// A sender that goes back has ended an RNR wait: what the wait held up is due.
void Recover::expect_now(std::uint16_t ring, frame::Instant now) {
  schedule_.expect(ring, now.ns);
}

/// Of a sender that goes back. Perhaps nothing that the switch made reached it or its receiver,
/// because the frames that it was made from were damaged where no ICRC covers them. A PSN that is
/// further away than the slots reach is no repeat of a sender's.
void Recover::hear(const RingChild& sender, const frame::Frame& frame, frame::Instant now) {
  RingState& ring = *rings_[sender.ring];
  if (is_within_reach(sender, frame.packet.psn)) {
    ring.answers[sender.child].reach_as(frame);
    ring.results[sender.child].reach_as(frame);
  }
  if (incarnations_.flow_of(sender).heard(frame.packet.psn, now.ns)) {
    expect_now(sender.ring, now);
  }
}

bool Recover::is_within_reach(const RingChild& sender, std::uint32_t psn) const {
  return is_near(incarnations_.flow_of(sender).next_in, psn, rings_[sender.ring]->slots.slots());
}

/// Moves e over all packets that have come.
void Recover::advance(const RingChild& sender, std::uint32_t psn) {
  RingState& ring = *rings_[sender.ring];
  Flow& flow = incarnations_.flow_of(sender);
  const bool lacked = flow.lacks_packets();
  const std::uint32_t behind = wire::psn_add(psn, 1);
  if (wire::psn_before(flow.furthest_in, behind)) {
    flow.furthest_in = behind;
  }
  const auto has_come = [&](std::uint32_t wanted) {
    const auto located = incarnations_.history_of(sender).locate(wanted);
    return located.place == conn::MessageHistory::Place::inside &&
           ring.slots.has_come(located.record->first_slot + located.packet, located.record->message,
                               sender.child);
  };
  while (flow.lacks_packets() && has_come(flow.next_in)) {
    flow.next_in = wire::psn_add(flow.next_in, 1);
  }
  ring.gaps += flow.lacks_packets() ? 1 : 0;
  assert(ring.gaps != 0 || !lacked);
  ring.gaps -= lacked ? 1 : 0;
  assert(ring.gaps <= incarnations_.flows_of(sender.ring).size());
}

void Recover::came_again(const frame::Frame& frame, const conn::Verdict& verdict,
                         frame::Instant now) {
  const RingChild sender{verdict.ring, verdict.child};
  hear(sender, frame, now);
  note_gap(sender, frame.packet.psn, now);
}

void Recover::came_without_first(frame::Frame& frame, const conn::Verdict& verdict,
                                 frame::Instant now) {
  if (!wire::verify_icrc(frame)) {
    return drop(frame, verdict.ring, DropReason::bad_icrc, now);
  }
  const RingChild sender{verdict.ring, verdict.child};
  const std::uint32_t psn = frame.packet.psn;
  hear(sender, frame, now);
  const bool is_behind = wire::psn_before(psn, incarnations_.flow_of(sender).next_in);
  if (!is_behind && is_within_reach(sender, psn)) {
    advance(sender, psn); // its sender has come so far
  }
  // A sender that has lost a packet is asked again sooner than one that is slow.
  schedule_.expect(sender.ring, now.ns + recovery::kTimerFloor);
  note_gap(sender, psn, now);
  drop(frame, verdict.ring, DropReason::unknown_message, now);
}

/// Asks for what is missing below the PSN (R2).
void Recover::note_gap(const RingChild& sender, std::uint32_t psn, frame::Instant now) {
  if (wire::psn_before(incarnations_.flow_of(sender).next_in, psn)) {
    ask(sender, now);
  }
}

void Recover::swallow(frame::Frame& frame, const conn::Verdict& verdict, frame::Instant now) {
  if (!wire::verify_icrc(frame)) {
    return drop(frame, verdict.ring, DropReason::bad_icrc, now);
  }
  const RingChild sender{verdict.ring, verdict.child};
  Flow& flow = incarnations_.flow_of(sender);
  hear(sender, frame, now);
  ++flow.counters.swallowed;
  if (wire::psn_before(frame.packet.psn, flow.unacknowledged)) {
    acknowledge_again(sender, now);
  } else if (flow.pass != Flow::Pass::resent) {
    flow.pass = Flow::Pass::resent;
    if (!is_answered_already(sender, now)) {
      answer(sender, now);
    }
  }
  drop(frame, verdict.ring, DropReason::repeat_swallowed, now);
}

/// Whether the pass is what the switch has asked for, and the results are under way. The switch
/// above asks by itself for what it lacks. But where a rank goes back again and again, it may be
/// the acknowledgement that was lost, and nobody but the switch above can repeat it.
bool Recover::is_answered_already(const RingChild& sender, frame::Instant now) const {
  const Flow& flow = incarnations_.flow_of(sender);
  const bool is_under_way = leg_of(sender) == ring::Leg::outgoing
                                ? flow.asks <= 1
                                : now.ns - flow.progress_at < flow.round_trip_timer();
  return flow.is_own_pass && is_under_way;
}

/// Once in a pass. When patience is over, the receiver has to say it itself: it is sent its last
/// result again.
void Recover::acknowledge_again(const RingChild& sender, frame::Instant now) {
  Flow& flow = incarnations_.flow_of(sender);
  if (flow.pass != Flow::Pass::nothing) {
    return;
  }
  const bool is_done =
      may_speak(sender, now) ? say(sender, kAck, now) : send_last_again(sender, now);
  flow.pass = is_done ? Flow::Pass::acknowledged : Flow::Pass::nothing;
}

std::uint64_t Recover::may_answer_at(const RingChild& sender) const {
  const Flow& flow = incarnations_.flow_of(sender);
  const ring::Ring& ring = ring_of(sender);
  return ring.is_rank(ring.receiver_of(sender.child)) ? flow.may_answer_at()
                                                      : flow.may_answer_switch_at();
}

void Recover::answer(const RingChild& sender, frame::Instant now) {
  Flow& flow = incarnations_.flow_of(sender);
  if (flow.is_answered_soon()) {
    return;
  }
  const std::uint64_t at = may_answer_at(sender);
  if (now.ns < at) {
    flow.is_answer_due = true;
    return schedule_.expect(sender.ring, at);
  }
  flow.answer();
  resend(sender, now);
}

bool Recover::is_waiting_for_repeat(const Flow& flow) {
  return flow.asked_at != 0 && !flow.went_back && flow.asked_for == flow.next_in;
}

std::uint64_t Recover::may_ask_at(const RingChild& sender) const {
  const Flow& flow = incarnations_.flow_of(sender);
  return ring_of(sender).is_rank(sender.child) ? may_ask_rank_at(flow) : may_ask_switch_at(flow);
}

/// Once for each state of what it has brought, then at times that are twice as far apart.
std::uint64_t Recover::may_ask_switch_at(const Flow& flow) {
  if (flow.asks == 0 || flow.asked_for != flow.next_in) {
    return 0;
  }
  const unsigned doublings = std::min<unsigned>(flow.asks - 1u, recovery::kMostDoublings);
  return flow.asked_at + std::min(flow.timer() << doublings, recovery::kLongestPause);
}

std::uint64_t Recover::may_ask_rank_at(const Flow& flow) {
  if (flow.asks > 1) {
    return flow.asked_at +
           std::min(recovery::kRnrWait << std::min(flow.asks - 2u, 3u), recovery::kLongestPause);
  }
  if (flow.asks == 1 && !flow.lacks_packets()) {
    // Perhaps nothing was lost and the sender is slow. A soft-RoCE sender that goes back twice in a
    // row may lose its way (docs/transports.md).
    return flow.asked_at + recovery::kRnrWait;
  }
  return is_waiting_for_repeat(flow) ? flow.asked_at + flow.timer() : 0;
}

void Recover::ask(const RingChild& sender, frame::Instant now) {
  Flow& flow = incarnations_.flow_of(sender);
  if (now.ns < flow.hushed_until || now.ns < may_ask_at(sender) || !may_speak(sender, now)) {
    return;
  }
  const bool is_rank = ring_of(sender).is_rank(sender.child);
  if (is_rank ? ask_rank(sender, now) : ask_switch(sender, now)) {
    flow.asked(now.ns);
    schedule_.expect(sender.ring, may_ask_at(sender));
  }
}

/// False when there is no room.
bool Recover::ask_rank(const RingChild& sender, frame::Instant now) {
  Flow& flow = incarnations_.flow_of(sender);
  if (flow.asks == 0) {
    // An ACK makes a soft-RoCE requester listen that has ignored a NAK (docs/transports.md).
    say(sender, kAck, now);
    const bool is_said = say(sender, kNak, now);
    flow.counters.naks += is_said ? 1 : 0;
    return is_said;
  }
  const bool is_said = say(sender, kAskAgain, now);
  if (is_said) {
    ++flow.counters.rnr_naks;
    flow.hushed_until = now.ns + recovery::kRnrWait;
    raise_again(sender, now);
  }
  return is_said;
}

/// A rank that is late may wait for the acknowledgement of what has gone up. It was lost, or came
/// before this switch had begun, and nobody but the switch above repeats it: for sums that come
/// again.
void Recover::raise_again(const RingChild& sender, frame::Instant now) {
  if (leg_of(sender) == ring::Leg::outgoing && incarnations_.flow_of(sender).is_outstanding()) {
    answer(sender, now);
  }
}

/// It has what it sends in its cache, and obeys each NAK. False when there is no room.
bool Recover::ask_switch(const RingChild& sender, frame::Instant now) {
  Flow& flow = incarnations_.flow_of(sender);
  const bool is_said = say(sender, kNak, now);
  if (is_said) {
    flow.asks = flow.asked_for == flow.next_in ? flow.asks : 0;
    ++flow.counters.naks;
  }
  return is_said;
}

bool Recover::is_patient(std::uint16_t ring, frame::Instant now) const {
  const std::uint64_t patience = current_->rings()[ring].spec().patience_ms * frame::kNsPerMs;
  return now.ns - rings_[ring]->news_at_ns <= patience;
}

bool Recover::may_speak(const RingChild& sender, frame::Instant now) const {
  return is_patient(sender.ring, now) && incarnations_.may_answer(sender) &&
         !is_cut_off(sender.ring);
}

bool Recover::is_cut_off(std::uint16_t ring) const {
  return (current_->rings()[ring].ports_of_switches() & ports_down_) != 0;
}

/// nullptr when there is no room.
frame::Frame* Recover::compose(const recovery::AnswerTemplate& answers, std::uint8_t syndrome,
                               std::uint32_t unacknowledged) {
  frame::Frame* frame = forward_.originate(recovery::kMostAnswerBytes);
  if (frame != nullptr) {
    answers.write(*frame, syndrome, unacknowledged);
  }
  return frame;
}

frame::Frame* Recover::compose(const RingChild& sender, std::uint8_t syndrome) {
  return compose(rings_[sender.ring]->answers[sender.child], syndrome,
                 incarnations_.flow_of(sender).unacknowledged);
}

bool Recover::say(const RingChild& sender, std::uint8_t syndrome, frame::Instant now) {
  frame::Frame* frame = compose(sender, syndrome);
  if (frame == nullptr) {
    return false;
  }
  send_answer(*frame, sender, syndrome, now);
  return true;
}

void Recover::refuse_all(std::uint16_t ring, frame::Instant now) {
  for (std::uint16_t sender = 0; sender < incarnations_.senders_of(ring); ++sender) {
    if (may_speak({ring, sender}, now) &&
        say({ring, sender}, wire::nak_syndrome(kDisagreed), now)) {
      ++rings_[ring]->counters.told;
    }
  }
}

void Recover::take_leave(std::uint16_t ring, wire::NakCode why, frame::Instant now) {
  for (std::uint16_t child = 0; child < incarnations_.senders_of(ring); ++child) {
    if (may_be_told({ring, child})) {
      farewells_.put(farewell_of({ring, child}, why, now));
    }
  }
}

/// Not a switch, which tells its ranks itself; nor to whom the switch may not speak; nor where the
/// next incarnation speaks on the connection.
bool Recover::may_be_told(const RingChild& sender) const {
  return incarnations_.may_answer(sender) && ring_of(sender).is_rank(sender.child) &&
         incarnations_.live_connection_of(sender).connection->hellos == 0;
}

Farewell Recover::farewell_of(const RingChild& sender, wire::NakCode why,
                              frame::Instant now) const {
  const recovery::Flow& flow = incarnations_.flow_of(sender);
  const conn::Connection& connection = *incarnations_.live_connection_of(sender).connection;
  const RingState& state = *rings_[sender.ring];
  return {.answers = state.answers[sender.child],
          .connection = {connection.pair, connection.qp},
          .acknowledgements = incarnations_.answers_to(sender),
          .acknowledged_by = incarnations_.ports().receiver_port_of(sender),
          .unacknowledged = flow.unacknowledged,
          .released = flow.next_out,
          .reach = static_cast<std::uint32_t>(state.slots.slots()),
          .ring_id = ring_of(sender).spec().id,
          .sender = sender,
          .port = connection.port,
          .claim = flow.claim,
          .syndrome = wire::nak_syndrome(why),
          .since_ns = now.ns};
}

void Recover::tell_if_ended(frame::Frame& frame, frame::Instant now) {
  const conn::QueuePair name = conn::queue_pair_of(frame);
  const conn::Connection* connection = incarnations_.connections().find_ring(name, now.ms());
  if (connection == nullptr || connection->state != conn::ConnectionState::dead ||
      connection->hellos != 0) {
    return;
  }
  Farewell* farewell = farewells_.find(name);
  if (farewell == nullptr || !is_from_leaver(*farewell, frame)) {
    return;
  }
  if (wire::psn_before(frame.packet.psn, farewell->unacknowledged)) {
    acknowledge_again(*farewell, now);
  } else {
    tell(*farewell, now);
  }
}

bool Recover::is_from_leaver(const Farewell& farewell, frame::Frame& frame) {
  return frame.packet.parsed == wire::Parsed::message && farewell.port == frame.ingress &&
         is_near(farewell.unacknowledged, frame.packet.psn, farewell.reach) &&
         !incarnations_.is_claimed(farewell.claim) && wire::verify_icrc(frame);
}

void Recover::tell(Farewell& farewell, frame::Instant now) {
  if (now.ns >= farewell.told_at_ns + kTellPause && say(farewell, farewell.syndrome, now)) {
    farewell.told_at_ns = now.ns;
    const RingChild& sender = farewell.sender;
    if (names_sender(farewell) && rings_[sender.ring]) {
      ++rings_[sender.ring]->counters.told;
    }
  }
}

/// A requester that has lost acknowledgements may have sent nothing from a on. It ignores a NAK of
/// what it has not sent (IBTA §9.7.6.1).
void Recover::acknowledge_again(Farewell& farewell, frame::Instant now) {
  if (now.ns >= farewell.acknowledged_at_ns + kTellPause && say(farewell, kAck, now)) {
    farewell.acknowledged_at_ns = now.ns;
  }
}

/// Whether the ring's index is not another ring's by now.
bool Recover::names_sender(const Farewell& farewell) const {
  const ring::Ring& ring = ring_of(farewell.sender);
  return ring.spec().id == farewell.ring_id && farewell.sender.child < ring.senders();
}

/// False when there is no room.
bool Recover::say(const Farewell& farewell, std::uint8_t syndrome, frame::Instant now) {
  frame::Frame* frame = compose(farewell.answers, syndrome, farewell.unacknowledged);
  if (frame == nullptr) {
    return false;
  }
  const RingChild& sender = farewell.sender;
  const frame::TraceRecord record{
      .ring = sender.ring, .child = sender.child, .event = event_of(syndrome)};
  send_own(*frame, now, names_sender(farewell) ? record : Forward::kForwarded, farewell.port);
  return true;
}

void Recover::send_answer(frame::Frame& frame, const RingChild& sender, std::uint8_t syndrome,
                          frame::Instant now) {
  send_own(frame, now, {.ring = sender.ring, .child = sender.child, .event = event_of(syndrome)},
           incarnations_.ports().port_of(sender));
}

void Recover::send_own(frame::Frame& frame, frame::Instant now, const frame::TraceRecord& record,
                       std::optional<std::uint16_t> port) {
  passes<StageId::recover, StageId::forward>();
  forward_.send(frame, frame::Departure::consumed, now, record, port);
}

void Recover::resend(const RingChild& sender, frame::Instant now) {
  Flow& flow = incarnations_.flow_of(sender);
  flow.is_timing = false; // Karn: an acknowledgement may be for either copy
  flow.progress_at = now.ns;
  flow.is_answer_due = false;
  flow.is_resending = true;
  flow.resend_next = flow.unacknowledged;
  rings_[sender.ring]->resending.push(sender.child);
  const bool is_alone = turns_.is_empty();
  turns_.push(sender.ring);
  if (is_alone) {
    return resend_some(now);
  }
  schedule_.hurry(now.ns + kResendPause);
}

void Recover::renew_allowance(frame::Instant now) {
  if (now.ns != allowed_at_) {
    allowed_at_ = now.ns;
    allowed_ = kResendsPerLook;
  }
}

void Recover::resend_some(frame::Instant now) {
  renew_allowance(now);
  std::size_t in_vain = 0;
  while (allowed_ != 0 && in_vain < turns_.size()) {
    const std::uint16_t ring = turns_.pop();
    in_vain = take_turn(ring, now) == 0 ? in_vain + 1 : 0;
    if (rings_[ring] && !rings_[ring]->resending.is_empty()) {
      turns_.push(ring);
    }
  }
  if (!turns_.is_empty()) {
    schedule_.hurry(now.ns + kResendPause);
  }
}

/// One connection of the ring. Returns how many results it has tried to send.
unsigned Recover::take_turn(std::uint16_t ring, frame::Instant now) {
  if (!rings_[ring] || rings_[ring]->resending.is_empty()) {
    return 0; // its incarnation has ended
  }
  Turns& children = rings_[ring]->resending;
  const RingChild sender{ring, children.pop()};
  const unsigned tried = resend_from_next(sender, std::min(kResendsPerTurn, allowed_), now);
  assert(allowed_ >= std::max(tried, 1U));
  allowed_ -= std::max(tried, 1U); // a turn in vain takes its time too
  if (incarnations_.flow_of(sender).is_resending) {
    children.push(sender.child);
  }
  return tried;
}

/// Sends `most` results again at most, and fewer where others wait for the worker.
unsigned Recover::resend_from_next(const RingChild& sender, unsigned most, frame::Instant now) {
  Flow& flow = incarnations_.flow_of(sender);
  const std::uint16_t ring_group = current_->ring_group_of(sender.ring);
  const std::uint32_t from = wire::psn_before(flow.resend_next, flow.unacknowledged)
                                 ? flow.unacknowledged
                                 : flow.resend_next;
  unsigned tried = 0;
  if (!flow.is_resending) {
    return 0; // its receiver has no buffer
  }
  flow.is_resending = false;
  conn::MessageHistory& history = incarnations_.history_of(sender);
  history.for_each_known_from(from, [&](const conn::MessageRecord& record) {
    const std::int32_t begun = std::max(wire::psn_distance(record.first_psn, from), 0);
    for (auto packet = static_cast<std::uint32_t>(begun); packet < record.packets; ++packet) {
      const std::uint32_t psn = wire::psn_add(record.first_psn, packet);
      if (!flow.is_past(psn)) {
        return false;
      }
      if (tried == most || !lines_.may_send_again(ring_group, now)) {
        flow.is_resending = true;
        flow.resend_next = psn;
        return false;
      }
      ++tried;
      flow.counters.resent += send_again(sender, record, packet, now) ? 1 : 0;
    }
    return true;
  });
  if (tried != 0) {
    flow.progress_at = now.ns;
    schedule_.expect(sender.ring, now.ns + flow.timer());
  }
  return tried;
}

void Recover::resend_late(const RingChild& sender, frame::Instant now) {
  incarnations_.flow_of(sender).resends_late();
  resend(sender, now);
}

/// The result that left last, from which the receiver's acknowledgement tells everything.
bool Recover::send_last_again(const RingChild& sender, frame::Instant now) {
  Flow& flow = incarnations_.flow_of(sender);
  renew_allowance(now);
  if (now.ns < flow.kept_alive_at + flow.answer_pause() || allowed_ == 0 ||
      !lines_.may_send_again(current_->ring_group_of(sender.ring), now)) {
    return false;
  }
  --allowed_;
  flow.kept_alive_at = now.ns;
  const std::uint32_t last = wire::psn_add(flow.next_out, -1);
  const auto located = incarnations_.history_of(sender).locate(last);
  return located.place == conn::MessageHistory::Place::inside &&
         send_again(sender, *located.record, located.packet, now);
}

/// False when the result has not left, or there is no room.
bool Recover::send_again(const RingChild& sender, const conn::MessageRecord& record,
                         std::uint32_t packet, frame::Instant now) {
  RingState& ring = *rings_[sender.ring];
  const ring::Leg leg = leg_of(sender);
  const std::uint32_t psn = wire::psn_add(record.first_psn, packet);
  const std::uint32_t slot = record.first_slot + packet;
  if (!ring.has_left(leg, slot, record.message)) {
    return false;
  }
  const slot::SlotResult result = ring.cached_sum(leg, slot);
  const ResultTemplate& headers = ring.results[sender.child];
  frame::Frame* frame =
      forward_.originate(static_cast<std::uint32_t>(headers.most_bytes(result.data.size())));
  if (frame == nullptr) {
    return false;
  }
  const bool is_last = wire::psn_add(psn, 1) == incarnations_.flow_of(sender).next_out;
  headers.write(*frame,
                {.headers = record.headers,
                 .shape = record.shape,
                 .message = record.message,
                 .packets = record.packets,
                 .k = packet,
                 .psn = psn,
                 .stamp = incarnations_.stamp_for(sender),
                 .data = result.data,
                 .data_crc = result.crc},
                is_last ? ResultTemplate::AckRequest::yes : ResultTemplate::AckRequest::no);
  lines_.charge(current_->ring_group_of(sender.ring), frame->length);
  send_own(*frame, now,
           {.message = record.message,
            .packet = packet,
            .ring = sender.ring,
            .child = sender.child,
            .event = frame::TraceEvent::resent},
           incarnations_.ports().receiver_port_of(sender));
  return true;
}

void Recover::accept_response(frame::Frame& frame, frame::Instant now) {
  const wire::Aeth* aeth = recovery::find_aeth(frame);
  const auto sender = aeth == nullptr ? std::nullopt : incarnations_.sender_acknowledged_by(frame);
  if (!sender || !wire::icrc_is_valid(frame)) {
    if (!sender && aeth != nullptr) {
      see_late(frame, *aeth);
    }
    return send_on(frame, incarnations_.ports().destination_of(frame.pair), now);
  }
  const auto& receiver = incarnations_.ports().receiver_port_of(*sender);
  if (receiver && *receiver != frame.ingress) [[unlikely]] {
    return drop(frame, sender->ring, DropReason::wrong_port, now);
  }
  rings_[sender->ring]->heard_at_ns = now.ns;
  switch (wire::kind_of(aeth->syndrome)) {
  case wire::SyndromeKind::acknowledge:
    return see_ack(frame, *sender, *aeth, now);
  case wire::SyndromeKind::rnr:
    return see_rnr_nak(frame, *sender, *aeth, now);
  case wire::SyndromeKind::nak:
    return see_nak(frame, *sender, *aeth, now);
  case wire::SyndromeKind::reserved:
    return send_on(frame, *sender, now);
  }
}

/// Perhaps an acknowledgement that was under way when its run ended. Its sender goes on from there,
/// and would ignore what the switch says of a lower PSN.
void Recover::see_late(const frame::Frame& frame, const wire::Aeth& aeth) {
  Farewell* farewell = farewells_.find_acknowledged(conn::queue_pair_of(frame));
  const auto next = acknowledged_below(frame, aeth);
  if (farewell == nullptr || !next ||
      farewell->acknowledged_by.value_or(frame.ingress) != frame.ingress ||
      wire::psn_before(*next, farewell->unacknowledged) ||
      wire::psn_before(farewell->released, *next) || !wire::icrc_is_valid(frame)) {
    return;
  }
  farewell->answers.take(frame, aeth);
  farewell->unacknowledged = *next;
}

/// Moves a, and the template with it. False when `next` is not in a … s.
bool Recover::take_acknowledgement(const frame::Frame& frame, const RingChild& sender,
                                   const wire::Aeth& aeth, std::uint32_t next, frame::Instant now) {
  Flow& flow = incarnations_.flow_of(sender);
  if (wire::psn_before(next, flow.unacknowledged) || wire::psn_before(flow.next_out, next)) {
    return false;
  }
  rings_[sender.ring]->answers[sender.child].take(frame, aeth);
  const bool may_hurry = flow.may_hurry();
  flow.acknowledge(next, now.ns);
  if (may_hurry && flow.asks == 0) {
    schedule_.expect(sender.ring, now.ns);
  }
  if (!flow.is_outstanding() && flow.ack_timeout != 0) {
    schedule_.expect(sender.ring, flow.keep_alive_at()); // if it has to wait
  }
  return true;
}

void Recover::see_ack(frame::Frame& frame, const RingChild& sender, const wire::Aeth& aeth,
                      frame::Instant now) {
  take_acknowledgement(frame, sender, aeth, wire::psn_add(frame.packet.psn, 1), now);
  send_on(frame, sender, now);
}

void Recover::see_rnr_nak(frame::Frame& frame, const RingChild& sender, const wire::Aeth& aeth,
                          frame::Instant now) {
  if (take_acknowledgement(frame, sender, aeth, frame.packet.psn, now)) {
    const auto wait = wire::rnr_wait(wire::value_of(aeth.syndrome));
    incarnations_.flow_of(sender).hold(now.ns, static_cast<std::uint64_t>(wait.count()));
  }
  send_on(frame, sender, now);
}

/// A receiver lacks what is in the cache, unless it lacks what has not left (R3). Then its sender
/// must hear of it, if that is a rank. But what the switch above asks never reaches the rank, whose
/// tries would end: it asks again and again, for what is late too. And a switch repeats for the
/// switch that asks it, and for nobody behind that.
void Recover::see_nak(frame::Frame& frame, const RingChild& sender, const wire::Aeth& aeth,
                      frame::Instant now) {
  if (aeth.syndrome != kNak) {
    return send_on(frame, sender, now);
  }
  const std::uint32_t wanted = frame.packet.psn;
  Flow& flow = incarnations_.flow_of(sender);
  const std::uint32_t acknowledged = flow.unacknowledged;
  const bool is_new = take_acknowledgement(frame, sender, aeth, wanted, now);
  const bool is_old = wire::psn_before(wanted, acknowledged);
  const bool is_from_above = leg_of(sender) == ring::Leg::outgoing;
  const bool is_mendable = (is_new || is_old) && flow.is_past(wanted);
  const bool is_heard = may_speak(sender, now);
  const bool is_for_rank = ring_of(sender).is_rank(sender.child) && !is_from_above;
  const bool ends_here = is_mendable ? is_heard || is_from_above : !is_for_rank;
  if (!ends_here) {
    return send_on(frame, sender, now);
  }
  if (wanted != acknowledged && is_heard && (is_new || (is_old && !is_from_above))) {
    say(sender, kAck, now);
  }
  if (is_mendable && (is_new || is_from_above)) {
    ++flow.counters.mended;
    mend(sender, now);
  }
  drop(frame, sender.ring, DropReason::nak_mended, now);
}

void Recover::mend(const RingChild& sender, frame::Instant now) {
  if (!incarnations_.flow_of(sender).is_held(now.ns)) {
    answer(sender, now);
  }
}

void Recover::keep_alive(const RingChild& sender, const Wait& wait, frame::Instant now) {
  const std::uint8_t syndrome = syndrome_for(wait);
  if (frame::Frame* frame = compose(sender, syndrome)) {
    Flow& flow = incarnations_.flow_of(sender);
    flow.kept_alive_at = now.ns;
    ++flow.counters.kept_alive;
    send_answer(*frame, sender, syndrome, now);
  }
}

void Recover::keep_alive(const RingChild& sender, const conn::WaitingHello& hello, const Wait& wait,
                         frame::Instant now) {
  const std::uint8_t syndrome = syndrome_for(wait);
  const frame::Frame& waiting = *hello.frame;
  const recovery::AnswerTemplate answers(waiting, wire::find_ina_header(waiting)->qp.get());
  if (frame::Frame* frame = compose(answers, syndrome, waiting.packet.psn)) {
    ++incarnations_.flow_of(sender).counters.hellos_kept_alive;
    send_own(*frame, now, {.ring = sender.ring, .child = sender.child, .event = event_of(syndrome)},
             waiting.ingress);
  }
}

void Recover::send_on(frame::Frame& frame, const std::optional<std::uint16_t>& port,
                      frame::Instant now) {
  passes<StageId::recover, StageId::forward>();
  forward_.send(frame, frame::Departure::forwarded, now, {.event = frame::TraceEvent::forwarded},
                port);
}

/// To the sender that it acknowledges.
void Recover::send_on(frame::Frame& frame, const RingChild& sender, frame::Instant now) {
  send_on(frame, incarnations_.ports().port_of(sender), now);
}

void Recover::drop(frame::Frame& frame, std::uint16_t ring, DropReason reason, frame::Instant now) {
  ++rings_[ring]->counters.dropped[static_cast<std::size_t>(reason)];
  forward_.drop<StageId::recover>(frame, reason, now);
}

} // namespace weir::stage
