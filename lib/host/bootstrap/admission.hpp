// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/bootstrap/control_note.hpp"
#include "host/bootstrap/stream.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <vector>

namespace weir::host {

/// Who a connection says it is.
struct PendingPeer {
  std::unique_ptr<FramedStream> stream;
  std::uint16_t rank = 0;
  std::uint16_t world = 0;
};

/// Sends what the acceptor waits for. The acceptor answers with a challenge.
void ask_admission(FramedStream& stream, std::uint16_t rank, std::uint16_t world);

/// Sends the challenge back. That done, the caller is let in.
void answer_challenge(FramedStream& stream, const ControlFrame& challenge);

/// The acceptor of a rendezvous. Connections are heard side by side: one that stays silent, or
/// speaks something else, keeps no rank waiting. Bytes that merely look like a join let nobody in:
/// who joins has to send back a number that was drawn for him.
class Admission {
 public:
  /// Who may wait unheard, twice the ranks of the largest job. Past it the oldest has to go: it had
  /// the most time to say who it is.
  static constexpr std::size_t kMaxCallers = 512;

  explicit Admission(Socket listener) : listener_(std::move(listener)) {}

  /// The next connection that asked for admission and met its challenge, or nobody until the
  /// deadline.
  std::optional<PendingPeer> next(Deadline deadline);

 private:
  /// A connection that is not let in yet.
  struct Caller {
    std::unique_ptr<FramedStream> stream;
    std::optional<JoinBody> claim; // once it has said who it is; it is challenged then
    std::uint64_t token = 0;       // of the challenge
  };

  enum class Hearing : std::uint8_t { waiting, stranger, met };

  void wait(Deadline deadline) const;
  void open_to_callers();
  std::optional<PendingPeer> hear_callers();
  Hearing hear(Caller& caller);
  void challenge(Caller& caller, const ControlFrame& join);

  const Socket listener_;
  std::random_device entropy_;
  std::vector<Caller> callers_; // the oldest first
};

} // namespace weir::host
