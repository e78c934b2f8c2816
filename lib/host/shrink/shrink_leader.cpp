// SPDX-License-Identifier: BSD-3-Clause
#include "host/shrink/shrink_leader.hpp"

#include "host/base/control_note.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fcntl.h>
#include <optional>
#include <stdexcept>
#include <utility>

namespace weir::host {
namespace {

/// The admission closes its own; the history's goes on to listen.
Socket second_of(const Socket& listener) {
  return Socket([&] { return fcntl(listener.get(), F_DUPFD_CLOEXEC, 0); });
}

} // namespace

/// Time is left to meet those that answer.
std::chrono::milliseconds silence_limit(const GroupHistory& history,
                                        std::chrono::milliseconds timeout) {
  const auto patience =
      std::max<std::chrono::milliseconds>(history.keep_alive, FramedStream::kShortestSilence);
  return std::min(patience, timeout / 3);
}

ShrinkLeader::ShrinkLeader(GroupHistory& history, const ShrinkPlan& plan, Absent absent,
                           Deadline deadline)
    : history_(history), plan_(plan), absent_(std::move(absent)), deadline_(deadline),
      admission_(second_of(history.listener), history.credentials) {
  for (const std::uint16_t member : plan.members) {
    if (member > history.self.rank) {
      above_.try_emplace(member, history.endpoints[member], silence_limit(history, plan.timeout));
    }
  }
}

Survivors ShrinkLeader::run() {
  while (true) {
    hear(kPollPeriod);
    probe();
    const std::set<std::uint16_t> missing = awaited();
    if (missing.empty()) {
      return conclude();
    }
    if (Clock::now() >= deadline_) {
      abandon(
          plan_.error(ErrorCode::rendezvous_timeout, missing,
                      fmt::format("lived and did not come within {} ms", plan_.timeout.count())));
    }
  }
}

void ShrinkLeader::hear(std::chrono::milliseconds time) {
  try {
    if (std::optional<PendingPeer> peer = admission_.next(Clock::now() + time)) {
      seat(std::move(*peer));
    }
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& error) { // no descriptor is left
    abandon(plan_.error(ErrorCode::transport_failure, {history_.self.rank}, error.what()));
  }
}

/// A rank that comes again has given up its earlier connection, though we may not have heard so. No
/// other process can come as this rank: it would lack the history's token.
void ShrinkLeader::seat(PendingPeer peer) {
  const std::uint16_t rank = peer.claim.rank;
  if (!above_.contains(rank)) {
    const Error error =
        plan_.error(ErrorCode::mismatch, {rank}, "was left out by an earlier shrink");
    peer.stream->send(code(ControlKind::failed), encode(error));
    admission_.count(Rejections::Reason::no_rank);
    return;
  }
  peer.stream->allow_bodies_up_to(FramedStream::kMaxBody);
  peer.stream->notice_silence_within(history_.keep_alive);
  peer.stream->send(code(ControlKind::welcome), {});
  seats_[rank] = std::move(peer.stream);
}

bool ShrinkLeader::has_come(std::uint16_t rank) {
  const auto seat = seats_.find(rank);
  if (seat == seats_.end()) {
    return false;
  }
  seat->second->read_available();
  if (!seat->second->is_open()) {
    seats_.erase(seat);
    return false;
  }
  return true;
}

void ShrinkLeader::probe() {
  absent_.silent.erase(absent_.silent.upper_bound(history_.self.rank), absent_.silent.end());
  for (auto& [rank, liveness] : above_) {
    const LivenessProbe::State state = liveness.check();
    if (has_come(rank)) {
      continue;
    }
    if (state == LivenessProbe::State::ended) {
      absent_.ended.insert(rank);
    } else if (state == LivenessProbe::State::silent) {
      absent_.silent.insert(rank);
    }
  }
}

/// Who has not come, though it may.
std::set<std::uint16_t> ShrinkLeader::awaited() {
  std::set<std::uint16_t> ranks;
  for (const auto& [rank, liveness] : above_) {
    if (!has_come(rank) && !absent_.ended.contains(rank) && !absent_.silent.contains(rank)) {
      ranks.insert(rank);
    }
  }
  return ranks;
}

ShrinkMembership ShrinkLeader::who_goes_on() const {
  ShrinkMembership membership{.members = {history_.self.rank}, .left_out = history_.left_out};
  membership.left_out.insert(absent_.silent.begin(), absent_.silent.end());
  for (const auto& [rank, stream] : seats_) {
    membership.members.push_back(rank);
  }
  return membership;
}

/// Nobody proves that it has ended: who sits on the way may refuse in its name. Then each of all
/// ranks would go on alone.
void ShrinkLeader::check(const ShrinkMembership& membership) const {
  const std::size_t left = membership.members.size();
  if (!may_go_on(membership, history_.self.world)) {
    abandon(plan_.error(ErrorCode::rendezvous_timeout, membership.left_out,
                        fmt::format("did not answer and may be alive; {} of the first {} ranks are "
                                    "left; needed are more than half, or half with rank 0",
                                    left, history_.self.world)));
  }
  if (left == 1) {
    const std::set<std::uint16_t>& gone = absent_.ended.empty() ? absent_.silent : absent_.ended;
    throw plan_.error(ErrorCode::peer_died, gone,
                      "ended, as it seems, so one rank is left; a shrink leaves two at least. Who "
                      "wants to go on alone forms a group with world 1");
  }
}

Survivors ShrinkLeader::conclude() {
  Survivors survivors{.membership = who_goes_on(),
                      .streams = {},
                      .callers_turned_away = admission_.rejections().total()};
  check(survivors.membership);
  survivors.streams.emplace_back(); // to this rank itself
  const std::vector<std::uint8_t> body = encode(survivors.membership);
  for (auto& [rank, stream] : seats_) {
    stream->send(code(ControlKind::membership), body);
    survivors.streams.push_back(std::move(stream));
  }
  return survivors;
}

void ShrinkLeader::abandon(const Error& error) const {
  for (const auto& [rank, stream] : seats_) {
    stream->send(code(ControlKind::failed), encode(error));
  }
  throw error;
}

} // namespace weir::host
