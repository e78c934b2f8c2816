// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>

namespace weir::netsim {

/// The sending end of a link: takes one thing after the other. Times are in any one unit.
class Transmitter {
 public:
  /// Begins to send, at `now` or when all before is sent, for `duration`. Returns the begin.
  std::uint64_t take(std::uint64_t now, std::uint64_t duration) {
    const std::uint64_t begin = std::max(free_from_, now);
    free_from_ = begin + duration;
    return begin;
  }

  /// When all that was taken is sent.
  std::uint64_t free_from() const { return free_from_; }

 private:
  std::uint64_t free_from_ = 0;
};

} // namespace weir::netsim
