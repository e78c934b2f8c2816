// SPDX-License-Identifier: BSD-3-Clause
#include "host/bootstrap/admission.hpp"

#include <algorithm>
#include <poll.h>

namespace weir::host {
namespace {

bool is_join(const ControlFrame& frame) {
  return frame.kind == code(ControlKind::join) && frame.body.size() == sizeof(JoinBody);
}

bool is_answer(const ControlFrame& frame, std::uint64_t token) {
  return frame.kind == code(ControlKind::answer) && frame.body.size() == sizeof(ChallengeBody) &&
         wire::view_as<ChallengeBody>(frame.body.data()).token.get() == token;
}

} // namespace

void ask_admission(FramedStream& stream, std::uint16_t rank, std::uint16_t world) {
  const JoinBody body{wire::be16(rank), wire::be16(world)};
  stream.send(code(ControlKind::join), bytes_of(body));
}

void answer_challenge(FramedStream& stream, const ControlFrame& challenge) {
  stream.send(code(ControlKind::answer), challenge.body);
}

std::optional<PendingPeer> Admission::next(Deadline deadline) {
  while (true) {
    open_to_callers();
    if (std::optional<PendingPeer> peer = hear_callers()) {
      return peer;
    }
    if (Clock::now() >= deadline) {
      return std::nullopt;
    }
    wait(deadline);
  }
}

void Admission::wait(Deadline deadline) const {
  std::vector<pollfd> entries{{listener_.get(), POLLIN, 0}};
  for (const auto& caller : callers_) {
    entries.push_back({caller.stream->descriptor(), POLLIN, 0});
  }
  poll(entries.data(), entries.size(), milliseconds_left(deadline));
}

/// Accepts connections while there is room. When full, accepts one in place of the oldest and
/// returns, so that all are heard before the next.
void Admission::open_to_callers() {
  while (Socket socket = accept_waiting(listener_)) {
    if (callers_.size() == kMaxCallers) {
      callers_.erase(callers_.begin());
    }
    callers_.push_back(
        {std::make_unique<FramedStream>(std::move(socket), sizeof(JoinBody)), std::nullopt});
    if (callers_.size() == kMaxCallers) {
      return;
    }
  }
}

std::optional<PendingPeer> Admission::hear_callers() {
  for (auto entry = callers_.begin(); entry != callers_.end();) {
    const Hearing hearing = hear(*entry);
    if (hearing == Hearing::waiting) {
      ++entry;
      continue;
    }
    Caller caller = std::move(*entry);
    entry = callers_.erase(entry);
    if (hearing == Hearing::met) {
      caller.stream->allow_bodies_up_to(FramedStream::kMaxBody);
      return PendingPeer{std::move(caller.stream), caller.claim->rank.get(),
                         caller.claim->world.get()};
    }
  }
  return std::nullopt;
}

/// A connection that closed or did not speak the protocol was a stranger.
Admission::Hearing Admission::hear(Caller& caller) {
  while (const std::optional<ControlFrame> frame = caller.stream->receive()) {
    if (caller.claim) {
      return is_answer(*frame, caller.token) ? Hearing::met : Hearing::stranger;
    }
    if (!is_join(*frame)) {
      return Hearing::stranger;
    }
    challenge(caller, *frame);
  }
  return caller.stream->is_open() ? Hearing::waiting : Hearing::stranger;
}

void Admission::challenge(Caller& caller, const ControlFrame& join) {
  caller.claim = wire::view_as<JoinBody>(join.body.data());
  caller.token = std::uint64_t{entropy_()} << 32 | entropy_();
  caller.stream->allow_bodies_up_to(sizeof(ChallengeBody));
  caller.stream->send(code(ControlKind::challenge),
                      bytes_of(ChallengeBody{wire::be64(caller.token)}));
}

} // namespace weir::host
