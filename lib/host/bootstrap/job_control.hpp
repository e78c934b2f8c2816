// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/bootstrap/inquest.hpp"
#include "host/bootstrap/rendezvous.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weir::host {

/// What the ranks of one all-reduce must agree on.
struct Call {
  std::uint64_t sequence = 0; // 1, 2, … of the job
  std::uint64_t count = 0;    // elements
  DataType type = DataType::f32;
  Operation operation = Operation::sum;

  bool operator==(const Call&) const = default;
};

/// The job's ranks between rendezvous and farewell, over the rendezvous's connections: lets an
/// all-reduce begin when every rank has entered the same one, and notices the end of a rank's
/// process. So no packet waits in the switch for a rank that is still computing, and a QP's retries
/// need not cover that time. Never blocks.
class JobControl {
 public:
  JobControl(std::uint16_t rank, std::uint16_t world, std::chrono::milliseconds timeout,
             std::vector<std::unique_ptr<FramedStream>> streams);

  /// This rank is ready for the call. Throws weir::Error when rank 0 has left.
  void enter(const Call& call);

  /// All ranks have entered it.
  bool may_begin(std::uint64_t sequence) const { return begun_ >= sequence; }

  /// Reads what came; `bytes_done` is how far this rank is in its call. Throws weir::Error for a
  /// death, a mismatch, a rank that does not enter in time, what another rank failed with, or what
  /// became of a suspicion.
  void poll(std::uint64_t bytes_done);

  /// Nothing moves here, for the reason given. poll throws what rank 0 finds out about it, in
  /// bounded time.
  void suspect(const Error& error);

  /// Tells the others what this rank failed with.
  void report(const Error& error);

  /// This rank makes no more calls.
  void leave();

  /// After leave: nobody makes any more calls, or it has taken too long until that is so.
  bool may_close() const { return all_left_ || Clock::now() >= stay_deadline_; }

 private:
  /// One rank as rank 0 sees it; elsewhere rank 0 alone.
  struct Peer {
    std::unique_ptr<FramedStream> stream; // none for ourselves
    std::optional<Call> entered;          // and not begun
    bool has_left = false;
  };

  void read(std::uint16_t from, const ControlFrame& frame);
  void note_entry(std::uint16_t from, const Call& call);
  void begin_when_all_entered();
  void check_agreement() const;
  void check_patience();
  void check_verdict();
  void open_inquest(const Suspicion& suspicion);
  Error late_entry() const;
  Error left_too_early(std::uint16_t rank) const;
  void check_alive(std::uint16_t rank);
  void note_farewells();
  void send_to_all(ControlKind kind, std::span<const std::uint8_t> body);

  const std::uint16_t rank_;
  const std::chrono::milliseconds timeout_;
  std::vector<Peer> peers_; // by rank
  std::uint64_t begun_ = 0;
  std::optional<Deadline> patience_; // since the first rank entered the call that has not begun
  std::uint64_t bytes_done_ = 0;
  std::optional<Inquest> inquest_;           // rank 0 alone
  std::optional<Error> suspicion_;           // other ranks alone: what rank 0 was told
  std::optional<Deadline> verdict_deadline_; // by when it has answered
  Deadline stay_deadline_;                   // since this rank has left
  bool all_left_ = false;
};

} // namespace weir::host
