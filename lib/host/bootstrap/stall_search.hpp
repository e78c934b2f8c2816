// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/bootstrap/error.hpp"
#include "host/bootstrap/stream.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace weir::host {

/// Why rank 0 asks.
struct Suspicion {
  enum class Kind : std::uint8_t {
    late_entry, // some ranks have not entered a call; the error names them
    standstill, // no progress in a call; the error says what its rank waits for
  };

  Kind kind = Kind::standstill;
  std::uint16_t by = 0; // the rank that noticed it
  Error error;
};

/// Rank 0's search for the rank that holds up the job. A rank that sees no progress usually cannot
/// tell for whom it waits, because the switch holds all others' packets. So rank 0 asks every rank
/// how far it is. A rank that is stopped or gone does not answer.
class StallSearch {
 public:
  /// Ranks can answer until the deadline.
  StallSearch(Suspicion suspicion, std::uint16_t world, Deadline deadline);

  /// The rank has this many bytes of the current call's result.
  void note_answer(std::uint16_t rank, std::uint64_t bytes_done);

  /// The rank has left and closed; do not ask it.
  void excuse(std::uint16_t rank) { note_answer(rank, UINT64_MAX); }

  bool is_over(Deadline now) const;

  /// The job's error, once the search is over. It names the ranks that did not answer, or those
  /// that lack results that others have, or nobody when all are equally far.
  Error verdict() const;

 private:
  std::vector<std::uint16_t> silent() const;
  std::vector<std::uint16_t> behind() const;

  const Suspicion suspicion_;
  const Deadline deadline_;
  std::vector<std::optional<std::uint64_t>> answers_; // by rank
};

/// "rank 2", "ranks 2, 3".
std::string named(const std::vector<std::uint16_t>& ranks);

} // namespace weir::host
