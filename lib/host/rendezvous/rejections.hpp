// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace weir::host {

/// Callers that rank 0 has not admitted, or not kept.
class Rejections {
 public:
  enum class Reason : std::uint8_t {
    stranger, // closed, was silent for too long, or spoke another protocol
    of_another_job,
    with_another_secret,
    without_secret,
    with_unexpected_secret,
    no_rank,    // of another world, or a number that is no rank
    rank_taken, // the rank is here already
  };

  void count(Reason reason) { ++counts_[static_cast<std::size_t>(reason)]; }

  std::uint64_t total() const;

  /// "2 with another secret, 1 of another job". Empty when there was none.
  std::string describe() const;

 private:
  static constexpr std::size_t kKinds = 7;

  std::array<std::uint64_t, kKinds> counts_{};
};

} // namespace weir::host
