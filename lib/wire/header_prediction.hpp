// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "wire/packet.hpp"

#include <array>
#include <cstdint>
#include <span>

namespace weir::wire {

/// Parses the packets of one link. Most packets differ in their PSN alone from an earlier one of
/// the same place in a message, so one comparison of headers stands for parse() (V. Jacobson, "4BSD
/// header prediction", ACM CCR 20(1), 1990).
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
  using Vector [[gnu::vector_size(16)]] = std::uint64_t;
  // Enough for Ethernet with a tag, IPv6, UDP and BTH.
  static constexpr std::size_t kVectors = 5;
  using Vectors = std::array<Vector, kVectors>;

  struct Learnt {
    Vectors headers{};
    Vectors compared{};                      // ones where packets must be the same
    std::array<std::uint8_t, kVectors> at{}; // where they are in the frame; the last ones overlap
    std::uint8_t misses = 0;                 // since it was learnt
    std::size_t frame_bytes = SIZE_MAX;      // as no frame is long: nothing is learnt
    Packet packet;

    bool predicts(std::span<const std::uint8_t> frame) const;
  };

  const Learnt& nearest_to(std::span<const std::uint8_t> frame) const;
  Outcome learn(std::span<const std::uint8_t> frame, const Packet& packet);

  std::array<Learnt, kPositions> learnt_; // by place in the message
  std::size_t bth_offset_ = 0;            // of the packet that was learnt last
};

} // namespace weir::wire
