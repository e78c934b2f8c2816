// SPDX-License-Identifier: BSD-3-Clause
#include "member.hpp"

#include "host/base/error.hpp"
#include "operators.hpp"
#include "violation.hpp"
#include "wire/headers.hpp"

#include <algorithm>

namespace weir::fabric {
namespace {

// RNR code: 10 us, because hosts here count in microseconds.
constexpr std::uint8_t kRetries =
    6; // 7 is no limit for soft-RoCE; these hosts end by retries alone
constexpr std::uint8_t kPatientTimer = 1;

/// The largest exponent x with 4.096 us x 2^x not above `time` (IBTA §9.9); 0 when there is none.
std::uint8_t exponent_within(Time time) {
  std::uint8_t exponent = 0;
  while (Time{4096} << (exponent + 1) <= time) {
    ++exponent;
  }
  return exponent;
}

/// What the rank's hello says of its queue pair; 0: nothing.
std::uint32_t told_queue_pair(const Member::Shared& shared, const JobRun& run, std::uint16_t rank) {
  const std::uint32_t own = run.seats[rank].outgoing_qp;
  switch (run.plan.tells) {
  case Tells::own:
    return own;
  case Tells::nothing:
    return 0;
  case Tells::anothers:
    return shared.fabric.queue_pair_beside(run.ring, run.plan.hosts[rank]).value_or(own);
  }
  return own;
}

host::WindowConfig window_config(const Member::Shared& shared, const JobRun& run,
                                 std::uint16_t rank) {
  const ring::RingSpec& spec = run.plan.spec;
  return {.ring = spec.id,
          .rank = rank,
          .world = spec.world(),
          .window = spec.window,
          .message_bytes = spec.max_message_bytes,
          .epoch = run.epoch,
          .nonce = run.nonce,
          .qp = told_queue_pair(shared, run, rank),
          .ack_timeout = exponent_within(shared.scenario.ack_timeout),
          .operators = run.plan.has_operators ? operator_table() : wire::OperatorTable()};
}

} // namespace

Member::Member(const Shared& shared, JobRun& run, std::uint16_t rank)
    : shared_(shared), run_(run), rank_(rank),
      inbox_(std::size_t{run.plan.spec.depth()} * run.plan.spec.max_message_bytes),
      moved_at_(shared.world.now), slots_(run.plan.spec.depth()),
      reducer_(window_config(shared, run, rank)) {
  const Seat& seat = run_.seats[rank_];
  device_.memory().add(seat.inbox_key, seat.inbox_base, inbox_);
  connect();
  shared_.fabric.expect_member({.ring = run_.ring,
                                .rank = rank_,
                                .generation = run_.generation,
                                .host = host(),
                                .qp = seat.outgoing_qp,
                                .first_psn = seat.outgoing_psn,
                                .nonce = run_.nonce,
                                .patience_ms = run_.plan.spec.patience_ms,
                                .keep_alive = run_.plan.spec.keep_alive});
}

Member::~Member() {
  shared_.coverage.add(Happening::retransmissions, repeats());
}

endpoint::QueuePairConfig Member::common_config() const {
  const ring::RingSpec& spec = run_.plan.spec;
  endpoint::QueuePairConfig config;
  config.local_mac = mac_of_host(host());
  config.local_ip = ip_of_host(host(), shared_.scenario.is_ipv6);
  config.path_mtu = spec.mtu;
  config.ack_timeout = endpoint::Duration(shared_.scenario.ack_timeout);
  config.retry_count = kRetries;
  config.rnr_retry = 7;
  config.rnr_timer = kPatientTimer;
  config.stack = run_.plan.stacks[rank_];
  config.window = run_.plan.packets_in_flight;
  config.send_depth = slots_;
  config.receive_depth = slots_;
  return config;
}

void Member::connect() {
  const RingPlan& plan = run_.plan;
  const std::uint16_t successor = plan.spec.successor(rank_);
  const std::uint16_t predecessor =
      static_cast<std::uint16_t>((rank_ + plan.spec.world() - 1u) % plan.spec.world());
  const Seat& seat = run_.seats[rank_];

  endpoint::QueuePairConfig outgoing = common_config();
  outgoing.local_qp = seat.outgoing_qp;
  outgoing.send_psn = seat.outgoing_psn;
  outgoing.remote_mac = mac_of_host(plan.hosts[successor]);
  outgoing.remote_ip = ip_of_host(plan.hosts[successor], shared_.scenario.is_ipv6);
  outgoing.remote_qp = run_.seats[successor].incoming_qp;
  outgoing.receive_psn = run_.seats[successor].incoming_psn;
  outgoing_ = &device_.create(outgoing);

  endpoint::QueuePairConfig incoming = common_config();
  incoming.local_qp = seat.incoming_qp;
  incoming.send_psn = seat.incoming_psn;
  incoming.remote_mac = mac_of_host(plan.hosts[predecessor]);
  incoming.remote_ip = ip_of_host(plan.hosts[predecessor], shared_.scenario.is_ipv6);
  incoming.remote_qp = run_.seats[predecessor].outgoing_qp;
  incoming.receive_psn = run_.seats[predecessor].outgoing_psn;
  incoming_ = &device_.create(incoming);
  for (std::uint32_t i = 0; i < slots_; ++i) {
    post_receive();
  }
}

/// For a SEND; an RDMA WRITE goes to the same place by its address.
void Member::post_receive() {
  const std::size_t bytes = run_.plan.spec.max_message_bytes;
  const std::size_t slot = received_++ % slots_;
  incoming_->post(
      endpoint::ReceiveRequest{.buffer = std::span(inbox_).subspan(slot * bytes, bytes)});
}

bool Member::owns(std::uint32_t queue_pair) const {
  const Seat& seat = run_.seats[rank_];
  return queue_pair == seat.incoming_qp || queue_pair == seat.outgoing_qp;
}

void Member::receive(Packet& packet) {
  device_.receive(std::span(packet.data, packet.length));
  pump();
}

void Member::timer() {
  if (device_.expire()) {
    pump();
  }
}

void Member::stall_until(Time time) {
  stalled_until_ = std::max(stalled_until_, time);
  wake_application_at(stalled_until_);
}

void Member::pump() {
  if (shared_.world.now >= stalled_until_) {
    work();
  }
  device_.transmit();
  note_failure();
  note_deadline();
}

/// A host ends a job that makes no progress (docs/protocol.md §7), also when nothing is left that
/// could wake it. The switch may keep its queue pairs alive for as long as that takes.
void Member::note_deadline() {
  constexpr Time deadline = 40; // ACK timeouts
  // While it computes, it does not wait. The others may compute before each call that it waits for.
  const Time others_compute = run_.plan.lateness * calls_.size();
  const Time ends = std::max(moved_at_, stalled_until_) +
                    (deadline + others_compute) * shared_.scenario.ack_timeout;
  if (state_ != State::working) {
    return;
  }
  if (shared_.world.now > ends) {
    return fail("no progress");
  }
  if (shared_.world.now >= looks_at_) {
    looks_at_ = ends + 1;
    wake_application_at(looks_at_);
  }
}

void Member::wake_application_at(Time time) {
  shared_.world.events.push({.time = time,
                             .kind = EventKind::application,
                             .place = run_.ring,
                             .rank = rank_,
                             .generation = run_.generation});
}

void Member::work() {
  for (bool moved = true; moved && state_ != State::failed;) {
    moved = take_results();
    moved |= take_completions();
    moved_at_ = moved ? shared_.world.now : moved_at_;
    moved |= finish_calls();
    moved |= post_messages(); // of the call before the pause that is over
    moved |= begin_calls();
    moved |= shared_.world.now >= stalled_until_ && post_messages();
  }
}

bool Member::take_results() {
  bool moved = false;
  while (const auto completion = incoming_->poll()) {
    if (completion->status != endpoint::Status::success) {
      continue;
    }
    const std::size_t slot = arrived_++ % slots_;
    const auto message = std::span<const std::uint8_t>(inbox_).subspan(
        slot * run_.plan.spec.max_message_bytes, completion->bytes);
    if (!accept(completion->immediate.value_or(0), message)) {
      return false;
    }
    post_receive();
    moved = true;
  }
  return moved;
}

/// False when the reducer rejected it; only a victim's may do so.
bool Member::accept(std::uint32_t immediate, std::span<const std::uint8_t> message) {
  const host::MessageWindow& window = reducer_.window();
  const bool may_be_late = window.state() == host::MessageWindow::State::greeting;
  try {
    const std::uint64_t number = window.arrived();
    reducer_.accept(host::message_in_one_piece(immediate, message));
    if (!may_be_late) {
      check_arrival(number, message.subspan(kInaHeaderBytes));
    }
    has_lost_answer_ = has_lost_answer_ || (may_be_late && window.arrived() == number);
    if (window.answer() == host::MessageWindow::Answer::plain) {
      fail("nobody aggregates");
    }
    if (may_be_late && window.answer() == host::MessageWindow::Answer::aggregated) {
      check_operators();
    }
    return state_ != State::failed;
  } catch (const host::Error& error) {
    fail(error.what());
    // Totals of the switch above pass one that has forgotten the ring, with another session.
    const bool passed_a_switch = run_.plan.tree.has_several_switches() &&
                                 !shared_.scenario.is_known(run_.ring, shared_.world.now);
    if (run_.plan.role != RingRole::victim && !may_be_late && !passed_a_switch) {
      throw Violation("I1", fmt::format("rank {}: {}", rank_, error.what()));
    }
    return false;
  }
}

/// All switches have what the result's table names, and no other.
void Member::check_operators() {
  const RingPlan& plan = run_.plan;
  const std::bitset<kMostOperators> found = reducer_.window().operators();
  const std::uint64_t due = !plan.has_operators ? 0 : plan.lacks_one ? 1 : 3;
  if (found.to_ullong() != due) {
    throw Violation("I1",
                    fmt::format("ring {} rank {}: the hello's result has operators {:#b}; due "
                                "are {:#b}",
                                plan.spec.id, rank_, found.to_ullong(), due));
  }
  if (due != 0) {
    shared_.coverage.hit(due == 1 ? Row::operator_lacking : Row::operators_agreed);
  }
}

void Member::check_arrival(std::uint64_t number, std::span<const std::uint8_t> message) {
  if (run_.plan.role == RingRole::victim) {
    return;
  }
  shared_.coverage.hit(Happening::results_checked);
  const ExpectedResults::Share* share = run_.expected.share_of(number);
  const auto wrong = [&](const std::string& text) {
    throw Violation("I1", fmt::format("ring {} epoch {} rank {} message {}: {}", run_.plan.spec.id,
                                      run_.epoch, rank_, number, text));
  };
  if (share == nullptr) {
    return wrong("a result past the last call");
  }
  if (run_.plan.is_disputed(share->call)) {
    return wrong(fmt::format("a result of call {}, on which the ranks do not agree", share->call));
  }
  if (message.size() != share->bytes) {
    return wrong(fmt::format("{} bytes; due are {}", message.size(), share->bytes));
  }
  const auto due =
      run_.expected.results_of(share->call).begin() + static_cast<std::ptrdiff_t>(share->offset);
  const auto first_wrong = std::mismatch(message.begin(), message.end(), due).first;
  if (first_wrong != message.end()) {
    wrong(
        fmt::format("wrong result of call {} ({}) at byte {}", share->call,
                    host::describe(run_.plan.calls[share->call].call),
                    static_cast<std::ptrdiff_t>(share->offset) + (first_wrong - message.begin())));
  }
}

bool Member::take_completions() {
  bool moved = false;
  while (const auto completion = outgoing_->poll()) {
    if (completion->status == endpoint::Status::success) {
      reducer_.complete();
      ++acknowledged_;
      moved = true;
    }
  }
  return moved;
}

/// Queues as many calls as the rank wants to have under way.
bool Member::begin_calls() {
  const bool is_greeting = reducer_.window().state() == host::MessageWindow::State::greeting;
  const std::size_t most = run_.plan.calls_ahead[rank_];
  bool moved = false;
  while (!is_greeting && state_ == State::working && calls_.size() < most &&
         next_call_ < run_.plan.calls.size() && shared_.world.now >= stalled_until_) {
    begin_call();
    moved = true;
  }
  if (!is_greeting && state_ == State::working && calls_.empty() &&
      next_call_ == run_.plan.calls.size()) {
    state_ = State::finished;
  }
  return moved;
}

/// Sometimes some time of computing follows.
void Member::begin_call() {
  const CallPlan& plan = run_.plan.call_of(rank_, next_call_);
  RunningCall& call = calls_.emplace_back(plan, place(), run_.expected.given_by(rank_, next_call_));
  call.number = next_call_++;
  call.lost_before = shared_.fabric.lost_of(run_.ring);
  if (calls_.size() > 1) {
    shared_.coverage.hit(CallEvent::queued, plan.call.kind);
  }
  reducer_.begin(host::slice_of(plan.call, place(), call.memory.buffers(), {}));
  if (shared_.world.dice.chance(run_.plan.pauses)) {
    const Time longest = run_.plan.lateness * shared_.scenario.ack_timeout;
    stall_until(shared_.world.now + shared_.world.dice.below(longest) + 1);
  }
}

/// Those of which the reducer says that their owner has their memory again.
bool Member::finish_calls() {
  bool moved = false;
  while (next_call_ - calls_.size() < reducer_.finished()) {
    finish_call(calls_.front());
    calls_.pop_front();
    moved = true;
  }
  return moved;
}

void Member::finish_call(const RunningCall& call) {
  if (run_.plan.role == RingRole::victim) {
    return;
  }
  const std::uint64_t last = run_.expected.last_message_of(call.number);
  if (acknowledged_ <= last) { // its queue pair may still read the memory
    throw Violation("§7", fmt::format("ring {} rank {}: call {} is finished, but message {} is not "
                                      "acknowledged",
                                      run_.plan.spec.id, rank_, call.number, last));
  }
  check_memory(call);
  cover(call);
}

void Member::check_memory(const RunningCall& call) {
  if (const auto difference = call.memory.difference(run_.expected.kept_by(rank_, call.number))) {
    throw Violation("I1", fmt::format("ring {} epoch {} rank {} after call {} ({}): {}",
                                      run_.plan.spec.id, run_.epoch, rank_, call.number,
                                      host::describe(call.plan.call), *difference));
  }
}

void Member::cover(const RunningCall& call) const {
  Coverage& coverage = shared_.coverage;
  const CallPlan& plan = call.plan;
  coverage.hit(plan);
  if (shared_.fabric.lost_of(run_.ring) != call.lost_before) {
    coverage.hit(CallEvent::loss, plan.call.kind);
  }
  if (run_.generation > 1) {
    coverage.hit(CallEvent::later_run, plan.call.kind);
  }
}

void Member::note_calls(CallEvent event) const {
  for (const RunningCall& call : calls_) {
    shared_.coverage.hit(event, call.plan.call.kind);
  }
}

endpoint::SendKind Member::carrier_of(std::uint64_t message) const {
  const Carrier carrier = run_.plan.carriers[rank_];
  const bool is_send = carrier == Carrier::send || (carrier == Carrier::mixed && message % 2 == 1);
  shared_.coverage.hit(is_send ? Row::carried_by_send : Row::carried_by_write);
  return is_send ? endpoint::SendKind::send_immediate : endpoint::SendKind::write_immediate;
}

bool Member::post_messages() {
  bool moved = false;
  while (const auto message = reducer_.next()) {
    const std::uint16_t successor = run_.plan.spec.successor(rank_);
    const Seat& target = run_.seats[successor];
    endpoint::SendRequest request;
    request.id = message->number;
    request.kind = carrier_of(message->number);
    request.header = message->header;
    request.data = message->data;
    request.remote_address =
        target.inbox_base +
        (message->number % slots_) * std::uint64_t{run_.plan.spec.max_message_bytes};
    request.remote_key = target.inbox_key;
    request.immediate = static_cast<std::uint32_t>(message->number);
    if (outgoing_->post(request) != endpoint::PostResult::posted) {
      throw Violation("I3", "a message within the window finds the send queue full");
    }
    moved = true;
  }
  return moved;
}

void Member::send(std::span<const std::uint8_t> frame) {
  Packet& packet = shared_.world.packets.make(frame);
  packet.origin = {Origin::Kind::member, run_.ring, rank_, run_.generation};
  shared_.fabric.send_from(host(), packet);
}

void Member::wake_at(Time time) {
  shared_.world.events.push({.time = time,
                             .kind = EventKind::timer,
                             .place = run_.ring,
                             .rank = rank_,
                             .generation = run_.generation});
}

bool Member::was_told_of_another() const {
  return outgoing_->failure() == endpoint::Status::remote_access;
}

void Member::note_failure() {
  for (const endpoint::QueuePair* queue_pair : {outgoing_, incoming_}) {
    if (queue_pair->failure()) {
      fail(std::string(endpoint::name_of(*queue_pair->failure())));
    }
  }
}

void Member::fail(const std::string& text) {
  if (state_ == State::failed) {
    return;
  }
  state_ = State::failed;
  failure_ = fmt::format("rank {}: {}", rank_, text);
  shared_.world.tell("ring {} {}", run_.plan.spec.id, failure_);
}

std::string Member::describe() const {
  return fmt::format("rank {} {}: {}", rank_,
                     state_ == State::finished ? "finished"
                     : state_ == State::failed ? failure_
                                               : "works",
                     reducer_.describe());
}

} // namespace weir::fabric
