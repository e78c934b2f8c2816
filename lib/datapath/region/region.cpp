// SPDX-License-Identifier: BSD-3-Clause
#include "region/region.hpp"

#include "endpoint/read_packets.hpp"
#include "wire/headers.hpp"
#include "wire/icrc.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace weir::region {
namespace {

constexpr std::uint8_t kAck = wire::kAckUnlimited;
constexpr std::uint8_t kNak = wire::nak_syndrome(wire::NakCode::sequence_error);
constexpr std::uint8_t kAskAgain = wire::rnr_syndrome(1); // 10 us
constexpr std::size_t kDropsAtOnce = 64;
constexpr std::uint64_t kCongestionPause = 50'000; // ns, between two notifications for a member

wire::Opcode opcode_of(const frame::Frame& frame) {
  return static_cast<wire::Opcode>(frame.bth().opcode);
}

bool is_write(const frame::Frame& frame) {
  return opcode_of(frame) >= wire::Opcode::write_first &&
         opcode_of(frame) <= wire::Opcode::write_only_immediate;
}

bool is_response(const frame::Frame& frame) {
  return endpoint::is_read_response(frame);
}

bool is_answer(const frame::Frame& frame) {
  return frame.packet.opcode.position == wire::Position::none;
}

bool has_valid_icrc(frame::Frame& frame) {
  return frame.packet.parsed == wire::Parsed::message ? wire::verify_icrc(frame)
                                                      : wire::icrc_is_valid(frame);
}

/// nullptr: it is no ACK, NAK or RNR NAK, or there is not just an AETH behind the BTH.
const wire::Aeth* find_aeth(const frame::Frame& frame) {
  const std::size_t at = frame.packet.bth_offset + sizeof(wire::Bth);
  const bool is_one = opcode_of(frame) == wire::Opcode::acknowledge &&
                      frame.packet.icrc_offset == at + sizeof(wire::Aeth);
  return is_one ? &wire::view_as<wire::Aeth>(frame.data + at) : nullptr;
}

std::size_t most_copies(const RegionSpec& spec) {
  return spec.members.size() * spec.window;
}

} // namespace

Region::Member::Member(const RegionSpec& spec, const MemberSpec& member, const MemberBirth& birth)
    : port(member.port), asked(spec, member),
      told(birth.first_psn, most_copies(spec), spec.views.empty() ? 0 : member.reads,
           spec.patience_ms * frame::kNsPerMs) {}

Region::Region(RegionSpec spec, RegionBirth birth, Outlet& outlet)
    : spec_(std::move(spec)), birth_(std::move(birth)), outlet_(outlet),
      table_(entries_of(spec_), static_cast<std::uint16_t>(spec_.members.size())),
      inputs_(spec_.members.size()) {
  for (const RegionView& view : spec_.views) {
    kernels_.push_back(op::find_kernel(view.type, view.operation, op::best_cpu_level()));
  }
  members_.reserve(spec_.members.size());
  freed_.reserve(Requester::kFlight);
  for (std::size_t number = 0; number < spec_.members.size(); ++number) {
    members_.emplace_back(spec_, spec_.members[number], birth_.members[number]);
  }
}

/// Only the port by which a packet enters cannot be forged.
bool Region::is_from(const frame::Frame& frame, std::uint16_t number) const {
  const std::optional<std::uint16_t> port = members_[number].port;
  return frame.source() == spec_.members[number].ip && (!port || *port == frame.ingress);
}

bool Region::has_heard_same(const Region& other, std::uint16_t number) const {
  const MemberSpec& theirs = other.spec_.members[number];
  for (std::uint16_t ours = 0; ours < members(); ++ours) {
    const MemberSpec& member = spec_.members[ours];
    if (member.ip == theirs.ip && member.queue_pair == theirs.queue_pair && has_heard(ours) &&
        members_[ours].port == other.members_[number].port) {
      return true;
    }
  }
  return false;
}

void Region::accept(frame::Frame& frame, std::uint16_t number, frame::Instant now) {
  if (!is_from(frame, number)) {
    return outlet_.drop(frame, DropReason::region_elsewhere, now);
  }
  if (!has_valid_icrc(frame)) {
    return outlet_.drop(frame, DropReason::bad_icrc, now);
  }
  if (is_answer(frame)) {
    return accept_answer(frame, number, now);
  }
  accept_request(frame, number, now);
}

void Region::accept_request(frame::Frame& frame, std::uint16_t number, frame::Instant now) {
  Member& member = members_[number];
  if (has_heard(number) && member.asked.hear(frame.packet.psn)) {
    member.has_repeat_answered = false;
    member.speech.reach_as(frame);
  }
  switch (state()) {
  case State::forming:
    accept_while_forming(frame, number, now);
    break;
  case State::open:
    accept_while_open(frame, number, now);
    break;
  case State::ended:
    return accept_when_ended(frame, number, now);
  }
  expect(member);
}

/// A WRITE ONLY of the member's token to the region's first bytes.
bool Region::is_hello(const frame::Frame& frame, std::uint16_t number) const {
  if (opcode_of(frame) != wire::Opcode::write_only ||
      frame.packet.psn != spec_.members[number].first_psn ||
      frame.packet.payload_bytes != kTokenBytes) {
    return false;
  }
  const auto& reth =
      wire::view_as<wire::Reth>(frame.data + frame.packet.bth_offset + sizeof(wire::Bth));
  return reth.virtual_address.get() == birth_.base &&
         reth.remote_key.get() == birth_.multicast_key && reth.dma_length.get() == kTokenBytes &&
         std::memcmp(frame.payload(), birth_.members[number].token.data(), kTokenBytes) == 0;
}

void Region::accept_while_forming(frame::Frame& frame, std::uint16_t number, frame::Instant now) {
  Member& member = members_[number];
  if (has_heard(number) || !is_hello(frame, number)) {
    return outlet_.drop(frame, DropReason::region_early, now);
  }
  member.speech = Speech(frame, spec_.members[number].queue_pair);
  member.port = frame.ingress;
  member.asked.hear(frame.packet.psn);
  member.asked.accept_hello(now.ns);
  outlet_.consume(frame);
}

/// All hellos are acknowledged now: that is a barrier.
void Region::open_if_complete(frame::Instant now) {
  const bool is_complete =
      std::ranges::none_of(members_, [](const Member& member) { return member.speech.is_empty(); });
  if (state() != State::forming || !is_complete) {
    return;
  }
  state_.store(State::open, std::memory_order_relaxed);
  for (Member& member : members_) {
    member.asked[0].missing = 0;
  }
  for (std::uint16_t number = 0; number < members(); ++number) {
    answer(number, now);
  }
}

void Region::accept_while_open(frame::Frame& frame, std::uint16_t number, frame::Instant now) {
  using Verdict = Responder::Verdict;
  Member& member = members_[number];
  const bool is_read = endpoint::is_read_request(frame);
  const Verdict verdict = judge(frame, number);
  switch (verdict) {
  case Verdict::accept:
    return is_read ? pull(frame, number, now) : multicast(frame, number, now);
  case Verdict::gap:
    outlet_.drop(frame, DropReason::region_gap, now);
    return ask(number, now);
  case Verdict::answered:
    is_read ? repeat_pull(frame, number, now) : answer_repeat(number, now);
    return outlet_.drop(frame, DropReason::region_repeat, now);
  case Verdict::under_way:
    return outlet_.drop(frame, DropReason::region_repeat, now);
  case Verdict::full:
    member.asked.refuse_for_room();
    return outlet_.drop(frame, DropReason::region_window, now);
  case Verdict::invalid_request:
  case Verdict::access_error:
    return break_off(frame, number, verdict, now);
  }
}

Responder::Verdict Region::judge(const frame::Frame& frame, std::uint16_t number) const {
  using Verdict = Responder::Verdict;
  const Responder& asked = members_[number].asked;
  if (is_write(frame)) {
    return asked.judge(frame, birth_);
  }
  const Verdict place = asked.place(frame.packet.psn);
  if (place != Verdict::accept) {
    return place;
  }
  return endpoint::is_read_request(frame) && !spec_.views.empty()
             ? asked.judge_read(endpoint::read_request_in(frame), birth_)
             : Verdict::invalid_request;
}

/// One answer serves all repeats of a pass.
void Region::answer_repeat(std::uint16_t number, frame::Instant now) {
  if (!std::exchange(members_[number].has_repeat_answered, true)) {
    acknowledge(number, now);
  }
}

void Region::break_off(frame::Frame& frame, std::uint16_t number, Responder::Verdict verdict,
                       frame::Instant now) {
  const bool is_out_of_range = verdict == Responder::Verdict::access_error;
  members_[number].farewell =
      is_out_of_range ? wire::NakCode::remote_access : wire::NakCode::invalid_request;
  end(End::broken, now, number);
  tell_end(frame, number, now);
  outlet_.drop(frame, is_out_of_range ? DropReason::region_key : DropReason::region_request, now);
}

/// Nobody is told unasked, since a queue pair's number may have a new owner.
void Region::accept_when_ended(frame::Frame& frame, std::uint16_t number, frame::Instant now) {
  if (!is_silenced_ && has_heard(number)) {
    tell_end(frame, number, now);
  }
  outlet_.drop(frame, DropReason::region_ended, now);
}

/// What has been answered is answered so again, but for READs: their data are not there. While a
/// READ is half answered, what follows it says nothing: the member repeats the READ.
void Region::tell_end(const frame::Frame& frame, std::uint16_t number, frame::Instant now) {
  const Member& member = members_[number];
  const std::uint32_t psn = frame.packet.psn;
  const std::uint8_t refusal = wire::nak_syndrome(member.farewell);
  const bool is_read = endpoint::is_read_request(frame);
  const bool is_answered = member.asked.place(psn) == Responder::Verdict::answered;
  if (is_read && member.cut_off_at != psn && member.asked.is_inside_read(psn)) {
    return cut_off(number, psn, now);
  }
  if (is_read && (is_answered || member.cut_off_at == psn)) {
    return say(number, refusal, psn, now);
  }
  if (is_answered) {
    return answer_repeat(number, now);
  }
  if (member.asked.is_between_requests()) {
    say(number, refusal, member.asked.unanswered(), now);
  }
}

void Region::accept_answer(frame::Frame& frame, std::uint16_t number, frame::Instant now) {
  if (opcode_of(frame) == wire::Opcode::congestion_notification) {
    pass_congestion_on(number, now);
    return outlet_.consume(frame);
  }
  Member& member = members_[number];
  const wire::Aeth* aeth = find_aeth(frame);
  if (state() != State::open) {
    const bool is_over = state() == State::ended;
    return outlet_.drop(frame, is_over ? DropReason::region_ended : DropReason::region_early, now);
  }
  if (is_response(frame)) {
    return accept_response(frame, number, now);
  }
  if (aeth == nullptr) {
    return outlet_.drop(frame, DropReason::region_ghost, now);
  }
  switch (member.told.take(aeth->syndrome, frame.packet.psn, now.ns,
                           [this](const Copy& copy) { count_off(copy); })) {
  case Requester::Outcome::ghost:
    return outlet_.drop(frame, DropReason::region_ghost, now);
  case Requester::Outcome::refused:
    outlet_.consume(frame);
    return end(End::refused, now, number);
  case Requester::Outcome::taken:
    break;
  }
  outlet_.consume(frame);
  answer_freed(now);
  gather(now);
  send_copies(number, now);
  expect(member);
}

/// In one step its copies are put on all targets' connections: so all members have one order (W1).
void Region::multicast(frame::Frame& frame, std::uint16_t source, frame::Instant now) {
  Responder& asked = members_[source].asked;
  const std::uint64_t number = asked.accept(frame, birth_, now.ns);
  ++held_;
  ++counters_.accepted;
  const AckRequest ack_request = asked[number].asks ? AckRequest::yes : AckRequest::no;
  for (std::uint16_t target = 0; target < members(); ++target) {
    if (target == source && spec_.loopback == Loopback::off) {
      continue;
    }
    ++asked[number].missing;
    members_[target].told.add({.source = source, .request = number, .ack_request = ack_request},
                              now.ns);
    send_copies(target, now);
    expect(members_[target]);
  }
}

void Region::send_copies(std::uint16_t target, frame::Instant now) {
  while (const auto due = members_[target].told.next(now.ns)) {
    due->copy.is_read ? send_read(target, *due, now) : send_copy(target, *due, now);
  }
}

/// Without room for it, it is as if it were lost.
void Region::send_copy(std::uint16_t target, const Requester::Due& due, frame::Instant now) {
  const Member& member = members_[target];
  const Request& request = members_[due.copy.source].asked[due.copy.request];
  const auto bytes = static_cast<std::uint32_t>(member.speech.copy_bytes(*request.frame));
  frame::Frame* frame = outlet_.originate(bytes);
  if (frame == nullptr) {
    return;
  }
  const MemberSpec& spec = spec_.members[target];
  member.speech.copy(*frame, *request.frame, {spec.base + request.offset, spec.key}, due.psn,
                     due.copy.ack_request);
  ++counters_.copies;
  counters_.again += due.copy.is_again ? 1 : 0;
  outlet_.send(*frame, *this, *member.port, now);
}

/// To those whose packets are under way to the target, because these make the congestion.
void Region::pass_congestion_on(std::uint16_t target, frame::Instant now) {
  Member& member = members_[target];
  const std::uint64_t notified = counters_.notified;
  if (state() == State::open && now.ns >= member.congested_until) {
    member.congested_until = now.ns + kCongestionPause;
    member.told.for_each_under_way([&](const Copy& copy) { notify_congestion(copy.source, now); });
  }
  ++counters_.congested;
  counters_.suppressed += counters_.notified == notified ? 1 : 0;
}

void Region::notify_congestion(std::uint16_t source, frame::Instant now) {
  Member& member = members_[source];
  if (now.ns < member.notified_until) {
    return;
  }
  member.notified_until = now.ns + kCongestionPause;
  if (frame::Frame* const frame = outlet_.originate(Speech::kCongestionBytes)) {
    member.speech.notify_congestion(*frame);
    ++counters_.notified;
    outlet_.send(*frame, *this, *member.port, now);
  }
}

/// A target has it (W3).
void Region::count_off(const Copy& copy) {
  Request& request = members_[copy.source].asked[copy.request];
  if (--request.missing == 0) {
    outlet_.consume(*std::exchange(request.frame, nullptr));
    --held_;
    if (freed_.empty() || freed_.back() != copy.source) {
      freed_.push_back(copy.source);
    }
  }
}

/// The members of whose requests some are no longer held. There are few: an answer frees what one
/// member had not acknowledged.
void Region::answer_freed(frame::Instant now) {
  for (const std::uint16_t number : freed_) {
    answer(number, now);
  }
  freed_.clear();
}

/// A member's requests are answered in the order of their PSNs, when no target lacks them (A1).
void Region::answer(std::uint16_t number, frame::Instant now) {
  Responder& asked = members_[number].asked;
  do {
    if (asked.advance(now.ns)) {
      acknowledge(number, now);
    }
  } while (answer_read(number, now));
  ask(number, now);
  expect(members_[number]);
}

void Region::ask(std::uint16_t number, frame::Instant now) {
  Responder& asked = members_[number].asked;
  const Responder::Ask how = asked.ask(now.ns);
  if (how == Responder::Ask::nothing) {
    return;
  }
  ++counters_.asked;
  acknowledge(number, now);
  say(number, how == Responder::Ask::nak ? kNak : kAskAgain, asked.unanswered(), now);
}

/// All that is below A, by the name of a WRITE (A2, A3).
void Region::acknowledge(std::uint16_t number, frame::Instant now) {
  say(number, kAck, members_[number].asked.acknowledged(), now);
}

void Region::say(std::uint16_t number, std::uint8_t syndrome, std::uint32_t psn,
                 frame::Instant now) {
  const Member& member = members_[number];
  frame::Frame* frame = outlet_.originate(Speech::kMostAnswerBytes);
  if (frame == nullptr) {
    return;
  }
  member.speech.answer(*frame, syndrome, psn, member.asked.message_sequence());
  ++counters_.answers;
  outlet_.send(*frame, *this, *member.port, now);
}

void Region::await_hellos(frame::Instant now) {
  formed_by_ns_ = now.ns + spec_.forming_ms * frame::kNsPerMs;
  next_timer_ = std::min(next_timer_, formed_by_ns_);
}

bool Region::speaks_by(std::uint16_t port) const {
  return state() != State::ended && std::ranges::any_of(members_, [port](const Member& member) {
           return member.port == port && !member.speech.is_empty();
         });
}

Region::Storage Region::give_storage() {
  assert(state() == State::ended);
  Storage storage;
  storage.reserve(members_.size());
  for (Member& member : members_) {
    storage.push_back(member.told.give_storage());
  }
  return storage;
}

void Region::end(End why, frame::Instant now, std::optional<std::uint16_t> culprit) {
  if (state() == State::ended) {
    return;
  }
  state_.store(State::ended, std::memory_order_relaxed);
  why_ended_ = why;
  culprit_ = culprit;
  ended_ns_ = now.ns;
  for (Member& member : members_) {
    member.told.clear();
  }
  drop_some(now);
}

/// The rest comes later, so that nobody's packets wait for long.
void Region::drop_some(frame::Instant now) {
  std::size_t left = kDropsAtOnce;
  for (Member& member : members_) {
    for (; left != 0 && member.asked.held() != 0; --left) {
      if (frame::Frame* const frame = member.asked.give_up()) {
        outlet_.drop(*frame, DropReason::region_ended, now);
        --held_;
      }
    }
  }
  drop_entries(left, now);
  has_let_go_.store(held() == 0, std::memory_order_relaxed);
  next_timer_ = held() == 0 ? std::max(ended_ns_ + patience_ns(), now.ns + frame::kNsPerMs)
                            : now.ns + recovery::kTimerGranularity;
}

void Region::silence(frame::Instant now) {
  end(End::superseded, now);
  is_silenced_ = true;
}

void Region::poll(frame::Instant now) {
  if (now.ns < next_timer_) {
    return;
  }
  next_timer_ = kNever;
  if (state() == State::forming && now.ns >= formed_by_ns_) {
    end(End::unformed, now);
  }
  for (std::uint16_t number = 0; number < members() && state() != State::ended; ++number) {
    poll(number, now);
  }
  if (state() == State::ended) {
    return drop_some(now);
  }
  for (const Member& member : members_) {
    expect(member);
  }
  next_timer_ = std::max(next_timer_, now.ns + recovery::kTimerGranularity);
}

bool Region::is_silent(const Member& member, frame::Instant now) const {
  const std::uint64_t since = member.told.waits_since();
  return since != kNever && now.ns > since + patience_ns();
}

void Region::poll(std::uint16_t number, frame::Instant now) {
  Member& member = members_[number];
  if (member.asked.wants_sign(now.ns)) {
    acknowledge(number, now);
  }
  if (state() == State::forming) {
    return;
  }
  if (is_silent(member, now)) {
    return end(End::silent, now, number);
  }
  ask(number, now);
  member.told.poll(now.ns);
  send_copies(number, now);
}

std::uint64_t Region::timer_of(const Member& member) const {
  const std::uint64_t sign = member.asked.sign_timer();
  if (state() == State::forming) {
    return std::min(sign, formed_by_ns_);
  }
  const std::uint64_t since = member.told.waits_since();
  const std::uint64_t patience = since == kNever ? kNever : since + patience_ns() + 1;
  return std::min({sign, patience, member.asked.ask_timer(), member.told.next_timer()});
}

void Region::expect(const Member& member) {
  if (state() != State::ended) {
    next_timer_ = std::min(next_timer_, timer_of(member));
  }
}

} // namespace weir::region
