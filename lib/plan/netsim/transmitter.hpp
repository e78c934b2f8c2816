// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>

namespace weir::netsim {

/// The sending end of a link: sends one thing after the other. All times have one unit.
class Transmitter {
 public:
  /// Sends for `duration`, from `now` on or after all before. Returns the start.
  std::uint64_t take(std::uint64_t now, std::uint64_t duration) {
    const std::uint64_t begin = std::max(free_from_, now);
    free_from_ = begin + duration;
    return begin;
  }

  /// When everything taken has been sent.
  std::uint64_t free_from() const { return free_from_; }

 private:
  std::uint64_t free_from_ = 0;
};

} // namespace weir::netsim
