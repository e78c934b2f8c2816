// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "wire/header_template.hpp"

#include <array>
#include <cstdint>
#include <span>

namespace weir::wire {

/// Parses the packets of one link, most of them by a comparison with an earlier one of the same
/// place in a message.
class HeaderPrediction {
 public:
  enum class Outcome : std::uint8_t {
    as_learnt, // all that parse() finds but the PSN is as in a packet that was learnt
    learnt,    // later packets are compared with this one
    parsed,    // neither
  };

  /// Leaves in `packet` what parse() would. A packet as learnt has the addresses of the packet that
  /// was learnt last for its place in a message: what follows from these need not be found again.
  Outcome parse(std::span<const std::uint8_t> frame, Packet& packet);

 private:
  struct Learnt {
    HeaderTemplate headers;
    LearningPace pace;
  };

  const HeaderTemplate& nearest_to(std::span<const std::uint8_t> frame) const;
  Outcome learn(std::span<const std::uint8_t> frame, const Packet& packet);

  std::array<Learnt, kPositions> learnt_; // by place in the message
  std::size_t bth_offset_ = 0;            // of the packet that was learnt last
};

} // namespace weir::wire
