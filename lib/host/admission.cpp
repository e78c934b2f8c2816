// SPDX-License-Identifier: BSD-3-Clause
#include "host/admission.hpp"

#include "host/control_note.hpp"

#include <algorithm>
#include <poll.h>

namespace weir::host {
namespace {

bool is_join(const ControlFrame& frame) {
  return frame.kind == code(ControlKind::join) && frame.body.size() == sizeof(JoinBody);
}

} // namespace

void ask_admission(FramedStream& stream, std::uint16_t rank, std::uint16_t world) {
  const JoinBody body{wire::be16(rank), wire::be16(world)};
  stream.send(code(ControlKind::join), bytes_of(body));
}

std::optional<Newcomer> Admission::next(Deadline deadline) {
  while (true) {
    open_to_callers();
    if (std::optional<Newcomer> newcomer = hear_callers()) {
      return newcomer;
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
    entries.push_back({caller->descriptor(), POLLIN, 0});
  }
  poll(entries.data(), entries.size(), milliseconds_left(deadline));
}

/// As many as there is room for; then one, for whom the oldest has to go, that all are heard in
/// between.
void Admission::open_to_callers() {
  while (Socket socket = accept_waiting(listener_)) {
    if (callers_.size() == kMaxCallers) {
      callers_.erase(callers_.begin());
    }
    callers_.push_back(std::make_unique<FramedStream>(std::move(socket), sizeof(JoinBody)));
    if (callers_.size() == kMaxCallers) {
      return;
    }
  }
}

/// Who hung up or said something else was a stranger.
std::optional<Newcomer> Admission::hear_callers() {
  for (auto caller = callers_.begin(); caller != callers_.end();) {
    const std::optional<ControlFrame> frame = (*caller)->receive();
    if (!frame && (*caller)->is_open()) {
      ++caller;
      continue;
    }
    std::unique_ptr<FramedStream> stream = std::move(*caller);
    caller = callers_.erase(caller);
    if (frame && is_join(*frame)) {
      stream->allow_bodies_up_to(FramedStream::kMaxBody);
      const auto& body = wire::view_as<JoinBody>(frame->body.data());
      return Newcomer{std::move(stream), body.rank.get(), body.world.get()};
    }
  }
  return std::nullopt;
}

} // namespace weir::host
