// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/bootstrap/stream.hpp"
#include "weir/communicator.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace weir::host {

/// What set rank 0 asking.
struct Suspicion {
  enum class Kind : std::uint8_t {
    late_entry, // ranks have not entered a call; the error names them
    standstill, // nothing moves in one; the error says what its rank waits for
  };

  Kind kind = Kind::standstill;
  std::uint16_t by = 0; // the rank that noticed
  Error error;
};

/// Rank 0's search for who holds up the job. A rank that notices that nothing moves knows that it
/// waits, and hardly ever for whom: the packets of all others wait in the switch. So rank 0 asks
/// every rank how far it is. Who is stopped, or gone without a word, does not answer.
class Inquest {
 public:
  /// Ranks have until the deadline to answer.
  Inquest(Suspicion suspicion, std::uint16_t world, Deadline deadline);

  /// The rank has so many bytes of the current call's result.
  void note_answer(std::uint16_t rank, std::uint64_t bytes_done);

  /// It needs no asking: it has left and closed.
  void excuse(std::uint16_t rank) { note_answer(rank, UINT64_MAX); }

  bool is_over(Deadline now) const;

  /// What the job ends with, once it is over: names the silent, or those who lack results that
  /// others have, or nobody when all are equally far.
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
