// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/call.hpp"
#include "host/base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace weir::host {

/// What the ranks have called, as rank 0 hears of it. Each rank's calls are compared with those of
/// rank 0, in their order.
class CallLedger {
 public:
  explicit CallLedger(std::uint16_t world) : ranks_(world), last_ranks_(world) {}

  /// Calls that a rank may make before rank 0 makes them, and rank 0 before the last rank makes
  /// them. They are kept until then.
  static constexpr std::size_t kMostAhead = std::size_t{1} << 18;

  /// The rank's next call. Throws Error: mismatch when it is not what rank 0 calls, or when rank 0
  /// calls something else than this rank did; transport_failure when its number is not the next, or
  /// too far ahead of rank 0's, or of the last rank's if it is rank 0's.
  void note(std::uint16_t rank, const Call& call);

  /// Whether rank 0 may make a call more.
  bool has_room() const { return open_.size() < kMostAhead; }

  /// Calls that the rank has made.
  std::uint64_t made_by(std::uint16_t rank) const { return ranks_[rank].made; }

  /// Calls of the rank that has made the most.
  std::uint64_t most() const { return most_; }

  /// The first call that some ranks have made and others have not. most() + 1 if there is none.
  std::uint64_t first_open() const { return settled_ + 1; }

  /// The ranks that have not made this call.
  std::vector<std::uint16_t> lacking(std::uint64_t sequence) const;

 private:
  struct Rank {
    std::uint64_t made = 0;
    std::deque<Call> ahead; // of rank 0: not compared yet
  };

  void note_of_rank_0(const Call& call);
  Error too_far_ahead(std::uint64_t sequence) const;
  void compare(std::uint16_t rank, const Call& call) const;
  void settle();

  std::vector<Rank> ranks_;
  std::deque<Call> open_;     // rank 0's calls that some rank has not made
  std::uint64_t settled_ = 0; // calls that all ranks have made
  std::size_t last_ranks_;    // number of ranks that have made only those
  std::uint64_t most_ = 0;
};

} // namespace weir::host
