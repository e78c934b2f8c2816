// SPDX-License-Identifier: BSD-3-Clause
#include "host/control/job_control.hpp"

#include "host/base/control_note.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

namespace weir::host {
namespace {

constexpr auto kAnswerTime = std::chrono::seconds(1); // a rank polls every millisecond
constexpr auto kRankZeroSlack =
    2 * kAnswerTime;                    // more time for rank 0, which knows best who is missing
constexpr std::size_t kMostFrames = 64; // of one rank in one poll

std::vector<std::uint8_t> encode(Suspicion::Kind kind, const Error& error) {
  std::vector<std::uint8_t> body = encode(error);
  body.insert(body.begin(), static_cast<std::uint8_t>(kind));
  return body;
}

/// Where the code of its error is in a frame's body. None: it has no error.
std::optional<std::size_t> place_of_code(ControlKind kind) {
  switch (kind) {
  case ControlKind::failed:
    return 0;
  case ControlKind::suspect: // the suspicion's kind comes first
    return 1;
  default:
    return std::nullopt;
  }
}

Suspicion decode_suspicion(const Sender& by, std::span<const std::uint8_t> body) {
  const bool is_broken =
      !body.empty() && body[0] == static_cast<std::uint8_t>(Suspicion::Kind::broken);
  return {.kind = is_broken ? Suspicion::Kind::broken : Suspicion::Kind::standstill,
          .by = by.rank,
          .error = decode_error(body.subspan(std::min<std::size_t>(body.size(), 1)), by)};
}

Progress decode(const ProgressBody& body) {
  return {.calls_made = body.calls_made.get(),
          .calls_done = body.calls_done.get(),
          .bytes_done = body.bytes_done.get(),
          .stands_still = body.stands_still != 0};
}

Error left_too_early(std::uint16_t rank, std::uint64_t calls) {
  return {ErrorCode::peer_died, rank,
          fmt::format("rank {} left the job before call {}", rank, calls + 1)};
}

} // namespace

JobControl::JobControl(std::uint16_t rank, std::uint16_t world, const Patience& patience,
                       std::vector<std::unique_ptr<FramedStream>> streams)
    : rank_(rank), patience_(patience), peers_(world), ledger_(world),
      late_timer_(patience.lateness, Clock::now()) {
  assert(rank < world && streams.size() == world);
  for (std::uint16_t peer = 0; peer < world; ++peer) {
    peers_[peer].stream = std::move(streams[peer]);
    if (peers_[peer].stream) {
      peers_[peer].stream->allow_bodies_up_to(kMostCallBytes);
    }
  }
}

void JobControl::send_to_all(ControlKind kind, std::span<const std::uint8_t> body) {
  for (const Peer& peer : peers_) {
    if (peer.stream) {
      peer.stream->send(code(kind), body);
    }
  }
}

void JobControl::report(const Error& error) {
  send_to_all(ControlKind::failed, host::encode(error));
}

void JobControl::tell(const EndedRegion& ended) {
  const RegionEndBody fields{wire::be32(ended.number)};
  const auto number = bytes_of(fields);
  std::vector<std::uint8_t> body(number.begin(), number.end());
  const std::string why = peer_text(ended.why);
  body.insert(body.end(), why.begin(), why.end());
  send_to_all(ControlKind::region_end, body);
}

void JobControl::fail(const Error& error) {
  report(error);
  throw error;
}

std::vector<int> JobControl::connections() const {
  std::vector<int> descriptors;
  for (const Peer& peer : peers_) {
    if (peer.stream) {
      descriptors.push_back(peer.stream->descriptor());
    }
  }
  return descriptors;
}

bool JobControl::has_work() const {
  return !untold_.empty() || is_asked_ || has_unread_ ||
         std::ranges::any_of(
             peers_, [](const Peer& peer) { return peer.stream && peer.stream->has_backlog(); });
}

bool JobControl::is_timing() const {
  const bool may_be_late =
      patience_.lateness.count() != 0 && ledger_.first_open() <= ledger_.most();
  return may_be_late || stall_search_ || suspicion_ || peers_[rank_].left;
}

// ------------------------------------------------------------------------------------------ calls

std::string JobControl::waits_for() const {
  if (has_room()) {
    return waits_for_;
  }
  if (rank_ != 0) {
    return fmt::format("rank 0 has not read {} calls", CallLedger::kMostAhead);
  }
  const std::vector<std::uint16_t> late = ledger_.lacking(ledger_.first_open());
  return fmt::format("{} {} not made call {}", named(late), late.size() == 1 ? "has" : "have",
                     ledger_.first_open());
}

void JobControl::note_call(const Call& call) {
  ++own_.calls_made;
  if (rank_ == 0) {
    note(0, call);
    return;
  }
  if (!has_room()) {
    fail(Error(ErrorCode::transport_failure, 0,
               fmt::format("rank {} makes call {}; rank 0 has not read the last {}; allowed: no "
                           "more",
                           rank_, call.sequence, CallLedger::kMostAhead)));
  }
  const NumberedCall body{wire::be64(call.sequence), encode(call)};
  const auto bytes = bytes_of(body);
  untold_.insert(untold_.end(), bytes.begin(), bytes.end());
}

/// While rank 0 does not read, calls wait here: in the connection no more may wait than it allows.
void JobControl::tell_calls() {
  if (!peers_[0].stream) {
    untold_.clear();
  }
  while (!untold_.empty() && !peers_[0].stream->has_backlog()) {
    send_calls();
  }
}

void JobControl::tell_all_calls() {
  while (peers_[0].stream && !untold_.empty()) {
    send_calls();
  }
}

void JobControl::send_calls() {
  assert(peers_[0].stream && !untold_.empty() && untold_.size() % sizeof(NumberedCall) == 0);
  const std::size_t bytes = std::min(untold_.size(), kMostCallBytes);
  peers_[0].stream->send(code(ControlKind::calls), std::span(untold_).first(bytes));
  untold_.erase(untold_.begin(), untold_.begin() + static_cast<std::ptrdiff_t>(bytes));
}

void JobControl::read_calls(std::uint16_t from, std::span<const std::uint8_t> body) {
  for (; body.size() >= sizeof(NumberedCall); body = body.subspan(sizeof(NumberedCall))) {
    const auto& numbered = wire::view_as<NumberedCall>(body.data());
    note(from, host::decode(numbered.call, numbered.sequence.get()));
  }
}

void JobControl::note(std::uint16_t from, const Call& call) {
  try {
    ledger_.note(from, call);
  } catch (const Error& error) {
    fail(error);
  }
}

// ---------------------------------------------------------------------------------------- polling

void JobControl::poll(const Progress& own) {
  note_own(own);
  tell_calls();
  has_unread_ = false;
  for (std::uint16_t rank = 0; rank < peers_.size(); ++rank) {
    if (!peers_[rank].stream) {
      continue;
    }
    peers_[rank].stream->flush();
    hear(rank);
  }
  answer();
  check_departures();
  check_lateness();
  check_verdict();
}

/// A bounded number of frames, so that a rank that sends without a pause holds up nothing else.
void JobControl::hear(std::uint16_t rank) {
  FramedStream& stream = *peers_[rank].stream;
  for (std::size_t frames = 0; frames < kMostFrames; ++frames) {
    const std::optional<ControlFrame> frame = stream.receive();
    if (!frame) {
      check_alive(rank);
      return;
    }
    check(rank, *frame);
    read(rank, *frame);
  }
  has_unread_ = true;
}

void JobControl::check(std::uint16_t from, const ControlFrame& frame) {
  const auto kind = static_cast<ControlKind>(frame.kind);
  if (!may_send(kind, from)) {
    condemn(from, fmt::format("it sent a control frame of kind {}, which a rank {} may not send "
                              "during a job",
                              frame.kind, from == 0 ? "0" : "but rank 0"));
  }
  if (!may_have(kind, frame.body.size())) {
    condemn(from, fmt::format("it sent a control frame of kind {} with {} bytes, which such a "
                              "frame cannot have",
                              frame.kind, frame.body.size()));
  }
  const std::optional<std::size_t> place = place_of_code(kind);
  if (place && frame.body[*place] >= kErrorCodes) {
    condemn(from, fmt::format("it sent an error of code {}; allowed: 0 .. {}", frame.body[*place],
                              kErrorCodes - 1));
  }
}

void JobControl::condemn(std::uint16_t rank, const std::string& why) {
  fail(Error(ErrorCode::peer_died, rank, fmt::format("rank {} counts as dead: {}", rank, why)));
}

void JobControl::note_own(const Progress& own) {
  if (own.calls_done != own_.calls_done || own.bytes_done != own_.bytes_done) {
    waits_for_.clear();
  }
  const std::uint64_t calls_made = own_.calls_made;
  own_ = own;
  own_.calls_made = calls_made;
}

void JobControl::read(std::uint16_t from, const ControlFrame& frame) {
  switch (static_cast<ControlKind>(frame.kind)) {
  case ControlKind::calls:
    read_calls(from, frame.body);
    return;
  case ControlKind::failed: {
    const Error error = decode_error(frame.body, sender(from));
    if (rank_ == 0) {
      report(error);
    }
    throw error;
  }
  case ControlKind::suspect:
    open_stall_search(decode_suspicion(sender(from), frame.body));
    return;
  case ControlKind::question:
    is_asked_ = true;
    return;
  case ControlKind::progress:
    if (stall_search_) {
      stall_search_->note_answer(from, decode(wire::view_as<ProgressBody>(frame.body.data())));
    }
    return;
  case ControlKind::patience:
    note_patience(peer_text(std::string(frame.body.begin(), frame.body.end())));
    return;
  case ControlKind::region_end: {
    const auto& fields = wire::view_as<RegionEndBody>(frame.body.data());
    const auto why = std::string(frame.body.begin() + sizeof(fields), frame.body.end());
    if (when_region_ends_) {
      when_region_ends_({.number = fields.number.get(), .why = peer_text(why)});
    }
    return;
  }
  case ControlKind::leave:
    peers_[from].left = wire::view_as<LeaveBody>(frame.body.data()).calls_made.get();
    note_farewells();
    return;
  case ControlKind::all_left:
    all_left_ = true;
    return;
  default: // check() lets no other pass
    return;
  }
}

/// The kernel closes the connection of a process at once when it ends, for whatever cause. That of
/// a machine without power breaks when its keep-alive time is over.
void JobControl::check_alive(std::uint16_t rank) {
  Peer& peer = peers_[rank];
  if (peer.stream->is_open()) {
    return;
  }
  if (!peer.left) {
    fail(Error(ErrorCode::peer_died, rank,
               fmt::format("rank {} died without farewell: {}", rank, peer.stream->why_closed())));
  }
  peer.stream.reset();
  if (stall_search_) {
    stall_search_->excuse(rank);
  }
  all_left_ = all_left_ || rank_ != 0; // without rank 0, nobody else reports it
}

// -------------------------------------------------------------------------------------- farewells

/// A rank that lacks an acknowledgement suspects a standstill after `timeout`. The other ranks stop
/// waiting at that time, so rank 0 waits longer, to find out who is missing.
void JobControl::leave() {
  tell_all_calls();
  peers_[rank_].left = own_.calls_made;
  const bool has_farewell = patience_.farewell.count() != 0;
  stay_deadline_ =
      deadline_after(Clock::now(), has_farewell ? patience_.farewell : patience_.timeout);
  if (rank_ == 0) {
    stay_deadline_ = deadline_after(stay_deadline_, kRankZeroSlack);
  }
  send_to_all(ControlKind::leave, bytes_of(LeaveBody{wire::be64(own_.calls_made)}));
  note_farewells();
}

void JobControl::note_farewells() {
  if (rank_ != 0) {
    return;
  }
  const auto has_left = [](const Peer& peer) { return peer.left.has_value(); };
  if (std::all_of(peers_.begin(), peers_.end(), has_left)) {
    all_left_ = true;
    send_to_all(ControlKind::all_left, {});
  }
}

/// A rank that has left makes none of the later calls. The calls before may end.
void JobControl::check_departures() {
  const std::uint64_t most = rank_ == 0 ? ledger_.most() : own_.calls_made;
  for (std::uint16_t rank = 0; rank < peers_.size(); ++rank) {
    const std::optional<std::uint64_t> left = peers_[rank].left;
    if (left && *left < most && *left <= own_.calls_done) {
      fail(left_too_early(rank, *left));
    }
  }
}

// ------------------------------------------------------------------------------------- suspicions

bool JobControl::may_suspect(Suspicion::Kind kind) const {
  if (stall_search_) {
    return kind > stall_search_->kind();
  }
  return !suspicion_ && Clock::now() >= quiet_until_;
}

/// Of ranks that wait for a late one, each may pause as for any other call.
std::chrono::milliseconds JobControl::answer_time() const {
  return waits_for_.empty() ? kAnswerTime
                            : std::max<std::chrono::milliseconds>(kAnswerTime, patience_.timeout);
}

void JobControl::suspect(Suspicion::Kind kind, const Error& error) {
  own_.stands_still = true;
  if (rank_ == 0) {
    open_stall_search({kind, rank_, error});
    return;
  }
  if (peers_[0].stream) {
    peers_[0].stream->send(code(ControlKind::suspect), encode(kind, error));
  }
  suspicion_ = error;
  verdict_deadline_ = deadline_after(deadline_after(Clock::now(), answer_time()), kAnswerTime);
}

void JobControl::open_stall_search(const Suspicion& suspicion) {
  if (stall_search_) {
    stall_search_->add(suspicion);
    return;
  }
  const auto world = static_cast<std::uint16_t>(peers_.size());
  stall_search_.emplace(suspicion, world, deadline_after(Clock::now(), answer_time()));
  stall_search_->note_answer(0, own_);
  for (std::uint16_t rank = 1; rank < world; ++rank) {
    if (!peers_[rank].stream) {
      stall_search_->excuse(rank);
    }
  }
  send_to_all(ControlKind::question, {});
}

/// One answer to all questions since the last, and none while that one waits to be read.
void JobControl::answer() {
  if (!is_asked_ || !peers_[0].stream || peers_[0].stream->has_backlog()) {
    return;
  }
  is_asked_ = false;
  peers_[0].stream->send(
      code(ControlKind::progress),
      bytes_of(ProgressBody{wire::be64(own_.calls_made), wire::be64(own_.calls_done),
                            wire::be64(own_.bytes_done),
                            static_cast<std::uint8_t>(own_.stands_still ? 1 : 0)}));
}

void JobControl::check_lateness() {
  if (rank_ != 0 || patience_.lateness.count() == 0 || stall_search_) {
    return;
  }
  late_timer_.look(Clock::now());
  const std::uint64_t open = ledger_.first_open() <= ledger_.most() ? ledger_.first_open() : 0;
  if (open != std::exchange(late_call_, open)) {
    late_timer_.renew();
  }
  if (open != 0 && late_timer_.is_over()) {
    open_stall_search({Suspicion::Kind::late, rank_, late_call()});
  }
}

Error JobControl::late_call() const {
  const std::vector<std::uint16_t> missing = ledger_.lacking(late_call_);
  return {ErrorCode::timeout, missing.front(),
          fmt::format("call {}: {} did not make it within {} ms", late_call_, named(missing),
                      patience_.lateness.count())};
}

void JobControl::check_verdict() {
  if (stall_search_ && stall_search_->is_over(Clock::now())) {
    close_stall_search();
  }
  if (suspicion_ && !peers_[0].stream) {
    throw Error(suspicion_->code(), suspicion_->rank(),
                fmt::format("{}; rank 0 is done and has closed, so nobody asks the others",
                            static_cast<const char*>(suspicion_->what())));
  }
  if (verdict_deadline_ && Clock::now() >= *verdict_deadline_) {
    throw Error(ErrorCode::timeout, 0,
                fmt::format("no answer from rank 0: stopped, or the machine or its network is "
                            "gone; rank {} noticed: {}",
                            rank_, static_cast<const char*>(suspicion_->what())));
  }
}

void JobControl::close_stall_search() {
  const StallSearch::Outcome outcome = stall_search_->outcome();
  if (outcome.error) {
    fail(*outcome.error);
  }
  if (stall_search_->is_about_lateness()) {
    late_timer_.renew();
  }
  const bool nobody_stands_still = stall_search_->kind() == Suspicion::Kind::late;
  stall_search_.reset();
  if (nobody_stands_still) {
    return;
  }
  note_patience(peer_text(outcome.waits_for));
  send_to_all(ControlKind::patience,
              {reinterpret_cast<const std::uint8_t*>(waits_for_.data()), waits_for_.size()});
}

/// No rank is to blame yet. Whoever still sees no progress asks again after a while.
void JobControl::note_patience(const std::string& waits_for) {
  suspicion_.reset();
  verdict_deadline_.reset();
  quiet_until_ = deadline_after(Clock::now(), kAnswerTime);
  waits_for_ = waits_for;
}

} // namespace weir::host
