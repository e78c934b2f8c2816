// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/error.hpp"
#include "host/base/stream.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::host {

/// How far a rank is.
struct Progress {
  std::uint64_t calls_made = 0;
  std::uint64_t calls_done = 0;
  std::uint64_t bytes_done = 0; // of the call after those
  bool stands_still = false;    // nothing of it has moved for the timeout

  bool is_waiting() const { return calls_done < calls_made; }
};

/// Why rank 0 asks.
struct Suspicion {
  enum class Kind : std::uint8_t {
    late,       // some ranks have not made a call in the time allowed; the error names them
    standstill, // nothing moves; the error says what its rank waits for
    broken,     // as before, and the rank's connection is lost, so that it cannot go on
  };

  Kind kind = Kind::standstill;
  std::uint16_t by = 0; // the rank that noticed it
  Error error;
};

/// Rank 0's search for the rank that holds up the job. A rank that sees no progress usually cannot
/// tell for whom it waits, because the switch holds all others' packets. So rank 0 asks every rank
/// how far it is. A rank that is stopped or gone does not answer. One that is late has not made the
/// call that others wait for; that is no error.
class StallSearch {
 public:
  /// What came of it.
  struct Outcome {
    std::optional<Error> error; // of the job; none: it goes on
    std::string waits_for;      // then: the ranks that are late, if any
  };

  /// Ranks can answer until the deadline.
  StallSearch(Suspicion suspicion, std::uint16_t world, Deadline deadline);

  Suspicion::Kind kind() const { return suspicion_.kind; }

  /// Whether a late rank is an error, because the time allowed is over.
  bool is_about_lateness() const { return lateness_.has_value(); }

  /// Another rank's suspicion during the search. The one that leaves the least hope counts.
  void add(const Suspicion& suspicion);

  void note_answer(std::uint16_t rank, const Progress& progress);

  /// The rank has left and closed; do not ask it.
  void excuse(std::uint16_t rank);

  bool is_over(Deadline now) const;

  /// Once the search is over. An error names the ranks that did not answer, or that are late, or
  /// that have the fewest results; or nobody when all are equally far.
  Outcome outcome() const;

 private:
  /// A rank's answer.
  struct Answer {
    bool is_there = false;
    bool is_excused = false;
    Progress progress;
  };

  template <typename Condition>
  std::vector<std::uint16_t> ranks_where(Condition condition) const;
  std::uint64_t awaited_call() const;
  std::vector<std::uint16_t> behind() const;
  Outcome outcome_without(const std::vector<std::uint16_t>& late, std::uint64_t call) const;
  Outcome outcome_with_all(std::uint64_t call) const;
  Error error_about_links() const;
  std::string noticed() const;

  Suspicion suspicion_;
  std::optional<Error> lateness_; // of a suspicion of that kind, whatever came after it
  const Deadline deadline_;
  std::vector<Answer> answers_; // by rank
};

} // namespace weir::host
