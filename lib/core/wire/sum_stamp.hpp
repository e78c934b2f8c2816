// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "weir/ina.hpp"
#include "wire/headers.hpp"

#include <cstdint>

namespace weir::wire {

inline bool is_result(const InaHeader& ina) {
  return (ina.flags & kInaFlagResult) != 0;
}

inline bool is_partial(const InaHeader& ina) {
  return (ina.flags & kInaFlagPartial) != 0;
}

/// The nonce of a hello (docs/protocol.md §2a): its result has it as message id.
inline std::uint32_t nonce_of(const InaHeader& hello) {
  return is_result(hello) ? hello.message_id.get() : hello.session.get();
}

/// What a switch writes into the INA header of a sum that leaves it (docs/protocol.md §5, §11.2).
class SumStamp {
 public:
  /// The sum of all ranks, for a child, whose session is this switch's.
  static SumStamp total(std::uint32_t session) { return {kInaFlagResult, session, 0, 0}; }

  /// The sum of some ranks, for the switch above, whose session it is. A hello tells it instead the
  /// ring's digest and the first of these ranks.
  static SumStamp partial(std::uint32_t session, std::uint32_t digest, std::uint16_t first_rank) {
    return {kInaFlagPartial, session, digest, first_rank};
  }

  /// `ina` is a header as it came, from a child or from the switch above.
  void mark(InaHeader& ina) const {
    if (ina.collective == static_cast<std::uint8_t>(Collective::hello)) {
      mark_hello(ina);
    } else {
      ina.session.set(session_);
    }
    ina.flags = flags_;
  }

 private:
  SumStamp(std::uint8_t flags, std::uint32_t session, std::uint32_t digest,
           std::uint16_t first_rank)
      : flags_(flags), first_rank_(first_rank), session_(session), digest_(digest) {}

  void mark_hello(InaHeader& ina) const {
    const std::uint32_t nonce = nonce_of(ina);
    const bool is_total = flags_ == kInaFlagResult;
    ina.session.set(is_total ? session_ : nonce);
    ina.message_id.set(is_total ? nonce : digest_);
    ina.root.set(first_rank_);
  }

  std::uint8_t flags_;
  std::uint16_t first_rank_;
  std::uint32_t session_;
  std::uint32_t digest_;
};

} // namespace weir::wire
