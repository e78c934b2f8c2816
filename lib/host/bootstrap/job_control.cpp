// SPDX-License-Identifier: BSD-3-Clause
#include "host/bootstrap/job_control.hpp"

#include "host/bootstrap/control_note.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir::host {
namespace {

constexpr auto kAnswerTime = std::chrono::seconds(1); // a rank polls every millisecond
constexpr auto kSlack = 2 * kAnswerTime; // more time for rank 0, which knows best who is missing

struct CallBody {
  wire::be64 sequence;
  wire::be64 count;
  std::uint8_t kind;
  std::uint8_t type;
  std::uint8_t operation;
  std::uint8_t finish;
  wire::be16 root;
};

static_assert(sizeof(CallBody) == 22);

CallBody encode(const Call& call) {
  return {wire::be64(call.sequence),
          wire::be64(call.count),
          static_cast<std::uint8_t>(call.kind),
          static_cast<std::uint8_t>(call.type),
          static_cast<std::uint8_t>(call.operation),
          static_cast<std::uint8_t>(call.finish),
          wire::be16(call.root)};
}

Call decode(const CallBody& body) {
  return {.sequence = body.sequence.get(),
          .kind = static_cast<CallKind>(body.kind),
          .count = body.count.get(),
          .type = static_cast<DataType>(body.type),
          .operation = static_cast<Operation>(body.operation),
          .finish = static_cast<Finish>(body.finish),
          .root = body.root.get()};
}

} // namespace

JobControl::JobControl(std::uint16_t rank, std::uint16_t world, std::chrono::milliseconds timeout,
                       std::vector<std::unique_ptr<FramedStream>> streams)
    : rank_(rank), timeout_(timeout), peers_(world) {
  for (std::uint16_t peer = 0; peer < world; ++peer) {
    peers_[peer].stream = std::move(streams[peer]);
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

void JobControl::enter(const Call& call) {
  if (rank_ == 0) {
    note_entry(0, call);
    return;
  }
  if (peers_[0].has_left) { // its connection may be closed already
    throw left_too_early(0);
  }
  peers_[0].stream->send(code(ControlKind::enter), bytes_of(encode(call)));
  entry_timer_.emplace(timeout_, Clock::now());
}

/// A rank that lacks an acknowledgement suspects a standstill after `timeout`. The other ranks stop
/// waiting at that time, so rank 0 waits longer, to find out who is missing.
void JobControl::leave() {
  peers_[rank_].has_left = true;
  stay_deadline_ = deadline_after(Clock::now(), timeout_);
  if (rank_ == 0) {
    stay_deadline_ = deadline_after(stay_deadline_, kSlack);
  }
  send_to_all(ControlKind::leave, {});
  note_farewells();
}

void JobControl::poll(std::uint64_t bytes_done) {
  bytes_done_ = bytes_done;
  for (std::uint16_t rank = 0; rank < peers_.size(); ++rank) {
    if (!peers_[rank].stream) {
      continue;
    }
    peers_[rank].stream->flush();
    while (const std::optional<ControlFrame> frame = peers_[rank].stream->receive()) {
      read(rank, *frame);
    }
    check_alive(rank);
  }
  check_entry_timer();
  check_verdict();
}

void JobControl::suspect(const Error& error) {
  if (rank_ == 0) {
    open_stall_search({Suspicion::Kind::standstill, rank_, error});
    return;
  }
  if (peers_[0].stream) {
    peers_[0].stream->send(code(ControlKind::suspect), host::encode(error));
  }
  suspicion_ = error;
  verdict_deadline_ = deadline_after(Clock::now(), kSlack);
}

/// The first suspicion starts it; others add nothing.
void JobControl::open_stall_search(const Suspicion& suspicion) {
  if (stall_search_) {
    return;
  }
  const auto world = static_cast<std::uint16_t>(peers_.size());
  stall_search_.emplace(suspicion, world, deadline_after(Clock::now(), kAnswerTime));
  stall_search_->note_answer(0, bytes_done_);
  for (std::uint16_t rank = 1; rank < world; ++rank) {
    if (!peers_[rank].stream) {
      stall_search_->excuse(rank);
    }
  }
  send_to_all(ControlKind::question, {});
}

void JobControl::read(std::uint16_t from, const ControlFrame& frame) {
  switch (static_cast<ControlKind>(frame.kind)) {
  case ControlKind::enter:
    if (frame.body.size() == sizeof(CallBody)) {
      note_entry(from, decode(wire::view_as<CallBody>(frame.body.data())));
    }
    return;
  case ControlKind::go:
    if (frame.body.size() == sizeof(wire::be64)) {
      begun_ = wire::view_as<wire::be64>(frame.body.data()).get();
      entry_timer_.reset();
    }
    return;
  case ControlKind::failed: {
    const Error error = decode_error(frame.body);
    if (rank_ == 0) {
      report(error);
    }
    throw error;
  }
  case ControlKind::suspect:
    if (rank_ == 0) {
      open_stall_search({Suspicion::Kind::standstill, from, decode_error(frame.body)});
    }
    return;
  case ControlKind::question:
    peers_[from].stream->send(code(ControlKind::progress),
                              bytes_of(ProgressBody{wire::be64(bytes_done_)}));
    return;
  case ControlKind::progress:
    if (stall_search_ && frame.body.size() == sizeof(ProgressBody)) {
      stall_search_->note_answer(from,
                                 wire::view_as<ProgressBody>(frame.body.data()).bytes_done.get());
    }
    return;
  case ControlKind::leave:
    peers_[from].has_left = true;
    note_farewells();
    return;
  case ControlKind::all_left:
    all_left_ = true;
    return;
  default:
    throw Error(ErrorCode::transport_failure, from,
                fmt::format("rank {} sent a control frame of kind {}", from, frame.kind));
  }
}

void JobControl::note_entry(std::uint16_t from, const Call& call) {
  peers_[from].entered = call;
  if (!entry_timer_) {
    entry_timer_.emplace(timeout_, Clock::now());
  }
  begin_when_all_entered();
}

Error JobControl::left_too_early(std::uint16_t rank) const {
  return {ErrorCode::peer_died, rank,
          fmt::format("rank {} left the job before call {}", rank, begun_ + 1)};
}

void JobControl::begin_when_all_entered() {
  const auto has_entered = [](const Peer& peer) { return peer.entered.has_value(); };
  for (std::uint16_t rank = 0; rank < peers_.size(); ++rank) {
    if (!peers_[rank].entered && peers_[rank].has_left) {
      const Error error = left_too_early(rank);
      report(error);
      throw error;
    }
  }
  if (!std::all_of(peers_.begin(), peers_.end(), has_entered)) {
    return;
  }
  try {
    check_agreement();
  } catch (const Error& error) {
    report(error);
    throw;
  }
  begun_ = peers_[0].entered->sequence;
  entry_timer_.reset();
  for (Peer& peer : peers_) {
    peer.entered.reset();
  }
  const wire::be64 sequence(begun_);
  send_to_all(ControlKind::go, bytes_of(sequence));
}

void JobControl::check_agreement() const {
  const Call& own = *peers_[0].entered;
  for (std::uint16_t rank = 1; rank < peers_.size(); ++rank) {
    const Call& other = *peers_[rank].entered;
    if (other != own) {
      throw Error(ErrorCode::mismatch, rank,
                  fmt::format("call {}: rank {} calls {}; rank 0 calls {}", own.sequence, rank,
                              describe(other), describe(own)));
    }
  }
}

void JobControl::check_entry_timer() {
  if (!entry_timer_) {
    return;
  }
  entry_timer_->look(Clock::now());
  if (!entry_timer_->is_over(rank_ == 0 ? std::chrono::milliseconds(0) : kSlack)) {
    return;
  }
  if (rank_ != 0) {
    throw Error(ErrorCode::timeout, 0,
                fmt::format("call {}: rank 0 did not let it begin within {} ms", begun_ + 1,
                            timeout_.count()));
  }
  entry_timer_.reset();
  open_stall_search({Suspicion::Kind::late_entry, rank_, late_entry()});
}

Error JobControl::late_entry() const {
  std::vector<std::uint16_t> missing;
  for (std::uint16_t rank = 0; rank < peers_.size(); ++rank) {
    if (!peers_[rank].entered) {
      missing.push_back(rank);
    }
  }
  return {ErrorCode::timeout, missing.front(),
          fmt::format("call {}: {} did not enter within {} ms", begun_ + 1, named(missing),
                      timeout_.count())};
}

void JobControl::check_verdict() {
  if (stall_search_ && stall_search_->is_over(Clock::now())) {
    const Error verdict = stall_search_->verdict();
    report(verdict);
    throw verdict;
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

/// The kernel closes the connection of a process at once when it ends, for whatever cause.
void JobControl::check_alive(std::uint16_t rank) {
  Peer& peer = peers_[rank];
  if (peer.stream->is_open()) {
    return;
  }
  if (peer.has_left) {
    peer.stream.reset();
    if (stall_search_) {
      stall_search_->excuse(rank);
    }
    all_left_ = all_left_ || rank_ != 0; // without rank 0, nobody else reports it
    return;
  }
  const Error error(ErrorCode::peer_died, rank,
                    fmt::format("rank {} died: its connection closed without farewell", rank));
  report(error);
  throw error;
}

void JobControl::note_farewells() {
  const auto has_left = [](const Peer& peer) { return peer.has_left; };
  if (rank_ != 0) {
    if (entry_timer_ && peers_[0].has_left) {
      throw left_too_early(0);
    }
    return;
  }
  if (std::all_of(peers_.begin(), peers_.end(), has_left)) {
    all_left_ = true;
    send_to_all(ControlKind::all_left, {});
    return;
  }
  const auto has_entered = [](const Peer& peer) { return peer.entered.has_value(); };
  if (std::any_of(peers_.begin(), peers_.end(), has_entered)) {
    begin_when_all_entered(); // a rank that left will never enter
  }
}

} // namespace weir::host
