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

/// A connection and the rank that it says it is.
struct PendingPeer {
  std::unique_ptr<FramedStream> stream;
  std::uint16_t rank = 0;
  std::uint16_t world = 0;
};

/// Sends the request to join. The acceptor answers with a challenge.
void ask_admission(FramedStream& stream, std::uint16_t rank, std::uint16_t world);

/// Sends the challenge back. The acceptor then admits the caller.
void answer_challenge(FramedStream& stream, const ControlFrame& challenge);

/// The acceptor of a rendezvous. It hears all connections at once, so one that is silent or speaks
/// another protocol delays no rank. Bytes that only look like a join admit nobody: a caller must
/// send back a random number that was drawn for it.
class Admission {
 public:
  /// Most connections that wait: twice the ranks of the largest job. When full, the oldest is
  /// closed: it had the most time to say who it is.
  static constexpr std::size_t kMaxCallers = 512;

  explicit Admission(Socket listener) : listener_(std::move(listener)) {}

  /// The next connection that asked to join and answered its challenge. nullopt at the deadline.
  std::optional<PendingPeer> next(Deadline deadline);

 private:
  /// A connection that is not admitted yet.
  struct Caller {
    std::unique_ptr<FramedStream> stream;
    std::optional<JoinBody> claim; // set when it has asked to join; it is then challenged
    std::uint64_t token = 0;       // the challenge's number
  };

  enum class Hearing : std::uint8_t { waiting, stranger, met };

  void wait(Deadline deadline) const;
  void open_to_callers();
  std::optional<PendingPeer> hear_callers();
  Hearing hear(Caller& caller);
  void challenge(Caller& caller, const ControlFrame& join);

  const Socket listener_;
  std::random_device entropy_;
  std::vector<Caller> callers_; // oldest first
};

} // namespace weir::host
