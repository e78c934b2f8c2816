// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/bootstrap/call.hpp"
#include "host/bootstrap/rendezvous.hpp"
#include "host/bootstrap/stall_search.hpp"
#include "host/bootstrap/stall_timer.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir::host {

/// The job's ranks between rendezvous and farewell, over the rendezvous's connections. A
/// call begins when every rank has entered it. The end of a rank's process is noticed. So no
/// packet waits in the switch for a rank that is still computing, and a QP's retries need not cover
/// that time. Never blocks.
class JobControl {
 public:
  JobControl(std::uint16_t rank, std::uint16_t world, std::chrono::milliseconds timeout,
             std::vector<std::unique_ptr<FramedStream>> streams);

  /// This rank is ready for the call. Throws Error when rank 0 has left.
  void enter(const Call& call);

  /// Whether all ranks have entered it.
  bool may_begin(std::uint64_t sequence) const { return begun_ >= sequence; }

  /// Reads what came. `bytes_done` is this rank's progress in its call. Throws Error for: a
  /// death, a mismatch, a rank that does not enter in time, another rank's error, the outcome of a
  /// suspicion.
  void poll(std::uint64_t bytes_done);

  /// Reports that this rank sees no progress, and why. poll() throws rank 0's verdict within
  /// bounded time.
  void suspect(const Error& error);

  /// Tells the others this rank's error.
  void report(const Error& error);

  /// This rank makes no more calls.
  void leave();

  /// After leave(): true when no rank makes more calls, or after a time limit.
  bool may_close() const { return all_left_ || Clock::now() >= stay_deadline_; }

 private:
  /// A rank as rank 0 sees it. Other ranks have only rank 0.
  struct Peer {
    std::unique_ptr<FramedStream> stream; // none for the own rank
    std::optional<Call> entered;          // a call that has not begun
    bool has_left = false;
  };

  void read(std::uint16_t from, const ControlFrame& frame);
  void note_entry(std::uint16_t from, const Call& call);
  void begin_when_all_entered();
  void check_agreement() const;
  void check_entry_timer();
  void check_verdict();
  void open_stall_search(const Suspicion& suspicion);
  Error late_entry() const;
  Error left_too_early(std::uint16_t rank) const;
  void check_alive(std::uint16_t rank);
  void note_farewells();
  void send_to_all(ControlKind kind, std::span<const std::uint8_t> body);

  const std::uint16_t rank_;
  const std::chrono::milliseconds timeout_;
  std::vector<Peer> peers_; // by rank
  std::uint64_t begun_ = 0;
  // Since the first rank entered a call that has not begun.
  std::optional<StallTimer> entry_timer_;
  std::uint64_t bytes_done_ = 0;
  std::optional<StallSearch> stall_search_;  // only on rank 0
  std::optional<Error> suspicion_;           // only on other ranks: what they told rank 0
  std::optional<Deadline> verdict_deadline_; // when its answer must be there
  Deadline stay_deadline_;                   // time limit since this rank has left
  bool all_left_ = false;
};

} // namespace weir::host
