// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "wire/packet.hpp"
#include "wire/psn.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

namespace weir::wire {

/// When to learn anew. Where packets of several connections take turns, few are as what was learnt.
/// So that learning costs little, only each eighth packet that is not is learnt.
class LearningPace {
 public:
  /// A packet is not as what was learnt. Whether to learn it.
  bool misses() { return ++misses_ >= kMissesBeforeLearning; }

  /// Something was learnt.
  void learns() { misses_ = 0; }

 private:
  static constexpr std::uint8_t kMissesBeforeLearning = 8;

  std::uint8_t misses_ = 0;
};

/// The headers of one packet, with which others are compared. Most packets of a connection differ
/// from an earlier one of the same place in a message in their PSN alone, so one comparison stands
/// for parse() (V. Jacobson, "4BSD header prediction", ACM CCR 20(1), 1990).
class HeaderTemplate {
 public:
  /// True for a packet with a BTH that stands where it usually does: behind three tags at most, and
  /// without IP options.
  static bool fits(const Packet& packet);

  /// Takes the headers of a frame for which fits(parse(frame)).
  void learn(std::span<const std::uint8_t> frame);

  bool is_empty() const { return frame_bytes_ == kNoFrame; }

  /// Whether parse() finds in the frame what it found in the one that was learnt, except for the
  /// PSN. Never before something was learnt.
  bool matches(std::span<const std::uint8_t> frame) const {
    return frame.size() == frame_bytes_ && has_same_headers(frame.data());
  }

  /// What parse() finds in a frame that matches and has this PSN.
  void describe(std::uint32_t psn, Packet& packet) const {
    packet = packet_;
    packet.psn = psn;
  }

  std::uint32_t psn_of(std::span<const std::uint8_t> frame) const {
    // With the byte before it: one load.
    const std::uint8_t* word = frame.data() + packet_.bth_offset + offsetof(Bth, ack_request);
    return view_as<be32>(word).get() & kPsnMask;
  }

  /// As parse() found it, with the PSN of the frame that was learnt.
  const Packet& packet() const { return packet_; }

 private:
  static constexpr std::uint32_t kNoFrame = UINT32_MAX; // as no frame is long

  using Vector [[gnu::vector_size(16)]] = std::uint64_t;
  // Enough for Ethernet with a tag, IPv6, UDP and BTH.
  static constexpr std::size_t kVectors = 5;
  static constexpr std::size_t kFixed = 3; // so many follow one another in any frame with a BTH
  using Vectors = std::array<Vector, kVectors>;

  /// What is compared of frames whose BTH stands at one place.
  struct Layout {
    Vectors compared{};                      // ones where packets must be the same
    std::array<std::uint8_t, kVectors> at{}; // where the vectors begin; the last ones overlap
    std::uint8_t bth_offset = 0;             // 0: not compared
  };

  static const Layout& layout_of(const Packet& packet);
  static Layout make_layout(Encapsulation encapsulation, std::size_t tags);

  bool has_same_headers(const std::uint8_t* frame) const {
    const auto vector_at = [frame](std::size_t offset) {
      Vector vector;
      std::memcpy(&vector, frame + offset, sizeof vector);
      return vector;
    };
    const auto difference = [&]<std::size_t... i>(std::index_sequence<i...>) { // without a loop
      return (((vector_at(i < kFixed ? i * sizeof(Vector) : layout_->at[i]) ^ headers_[i]) &
               layout_->compared[i]) |
              ...);
    }
    (std::make_index_sequence<kVectors>{});
    return (difference[0] | difference[1]) == 0;
  }

  Vectors headers_{};
  const Layout* layout_ = nullptr;
  std::uint32_t frame_bytes_ = kNoFrame;
  Packet packet_;
};

} // namespace weir::wire
