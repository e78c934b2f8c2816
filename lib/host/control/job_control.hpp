// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/control_note.hpp"
#include "host/base/stall_timer.hpp"
#include "host/control/call_ledger.hpp"
#include "host/control/stall_search.hpp"
#include "host/rendezvous/rendezvous.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace weir::host {

/// How long ranks wait for one another.
struct Patience {
  std::chrono::milliseconds timeout{10'000}; // without any progress, once all have made a call
  std::chrono::milliseconds lateness{0};     // until the last rank makes a call; 0: any time
  std::chrono::milliseconds farewell{0};     // of a rank that has left; 0: `timeout`
};

/// The job's ranks between rendezvous and farewell, over the rendezvous's connections. Calls do not
/// wait for it: they begin at once, and rank 0 hears of them afterwards and compares them. When
/// nothing moves, rank 0 finds out who holds up the job. The end of a rank's process is noticed.
/// A rank that sends what it may not, or does not read, counts as dead. Never blocks.
class JobControl {
 public:
  JobControl(std::uint16_t rank, std::uint16_t world, const Patience& patience,
             std::vector<std::unique_ptr<FramedStream>> streams);

  /// The connections to other ranks, as descriptors.
  std::vector<int> connections() const;

  /// Whether this rank may make a call now. Otherwise so many are kept that the last rank lacks, or
  /// that rank 0 has not read, that it must wait: poll() until it may.
  bool has_room() const {
    return rank_ == 0 ? ledger_.has_room() : untold_.size() < kMostUntoldBytes;
  }

  /// This rank makes a call; its number is one more than the last one's. Throws Error: mismatch on
  /// rank 0 when another rank calls something else, transport_failure when there is no room.
  void note_call(const Call& call);

  /// Tells rank 0 of the calls, and reads what came. `own` is how far this rank is, but for
  /// calls_made, which is known. Throws Error for: a death, a mismatch, a rank that left before a
  /// call of ours or is later than allowed, another rank's error, the outcome of a suspicion.
  void poll(const Progress& own);

  /// Whether there is something to send, or to read that the last poll() left: poll soon.
  bool has_work() const;

  /// Whether it measures a time: poll every StallTimer::kLookPeriod at least.
  bool is_timing() const;

  /// Whether such a suspicion would add something now. Otherwise one is looked into, or was a
  /// moment ago.
  bool may_suspect(Suspicion::Kind kind) const;

  /// Reports that this rank sees no progress, and why. poll() throws rank 0's verdict within
  /// bounded time, unless no rank is to blame.
  void suspect(Suspicion::Kind kind, const Error& error);

  /// The ranks that are late, as rank 0 found when it last looked: "rank 3 has not made call 7".
  /// Without room, those that leave none. Empty: none, or there was progress since.
  std::string waits_for() const;

  /// Tells the others that a region of the group has ended. Of rank 0.
  void tell(const EndedRegion& ended);

  /// Rank 0 has told of one. By the thread that polls.
  void when_region_ends(std::function<void(const EndedRegion&)> told) {
    when_region_ends_ = std::move(told);
  }

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
    std::optional<std::uint64_t> left;    // after so many calls
  };

  Sender sender(std::uint16_t rank) const {
    return {rank, static_cast<std::uint16_t>(peers_.size())};
  }

  void hear(std::uint16_t rank);
  void check(std::uint16_t from, const ControlFrame& frame);
  void read(std::uint16_t from, const ControlFrame& frame);
  void read_calls(std::uint16_t from, std::span<const std::uint8_t> body);
  void note(std::uint16_t from, const Call& call);
  void tell_calls();
  void tell_all_calls();
  void send_calls();
  void note_own(const Progress& own);
  void answer();
  void note_patience(const std::string& waits_for);
  void check_departures();
  void check_lateness();
  void check_verdict();
  void open_stall_search(const Suspicion& suspicion);
  void close_stall_search();
  std::chrono::milliseconds answer_time() const;
  Error late_call() const;
  void check_alive(std::uint16_t rank);
  [[noreturn]] void condemn(std::uint16_t rank, const std::string& why);
  void note_farewells();
  [[noreturn]] void fail(const Error& error);
  void send_to_all(ControlKind kind, std::span<const std::uint8_t> body);

  const std::uint16_t rank_;
  const Patience patience_;
  std::vector<Peer> peers_; // by rank
  CallLedger ledger_;       // only on rank 0
  static constexpr std::size_t kMostUntoldBytes = CallLedger::kMostAhead * sizeof(NumberedCall);
  std::vector<std::uint8_t> untold_; // calls that rank 0 has not heard of, as NumberedCalls
  bool is_asked_ = false;            // by rank 0, since our last answer
  bool has_unread_ = false;          // poll() left frames for the next one
  Progress own_;
  StallTimer late_timer_;                    // only on rank 0: since its first open call was made
  std::uint64_t late_call_ = 0;              // that call
  std::optional<StallSearch> stall_search_;  // only on rank 0
  std::optional<Error> suspicion_;           // only on other ranks: what they told rank 0
  std::optional<Deadline> verdict_deadline_; // when its answer must be there
  Deadline quiet_until_ = Deadline::min();   // no new suspicion until then
  std::string waits_for_;
  std::function<void(const EndedRegion&)> when_region_ends_;
  Deadline stay_deadline_; // time limit since this rank has left
  bool all_left_ = false;
};

} // namespace weir::host
