// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "l2/bridge.hpp"
#include "ring/current_rings.hpp"
#include "stage/dispatch.hpp"
#include "stage/forward.hpp"
#include "wire/glance.hpp"

#include <cstdint>
#include <span>

namespace weir::stage {

/// A short way for frames that are certainly none of a ring's: one that leaves by one port needs no
/// frame::Frame, so its mbuf's private area need not be read or written. It does what Receive,
/// Dispatch and Forward do to such a frame. All other frames take the stages. One per lcore.
///
/// Frames come in bursts from one port. What the frame before showed of its addresses holds for the
/// next one too: nobody else has used the bridge since on this lcore. Once a frame takes the stages
/// that may be forwarded by them, all later ones of the burst do, so that none overtakes it.
class FastPath {
 public:
  FastPath(const ring::CurrentRings& current, l2::Bridge& bridge, const Dispatch& dispatch,
           const Forward& forward);

  /// Said before the first frame of a burst.
  void begin_burst();

  /// No frame of this burst goes the short way any more.
  void end_burst() { is_open_ = false; }

  /// The port that the frame leaves by, as it came. Its source has been learnt then, and all that
  /// is left is to count and transmit it. frame::kNoPort: it takes the stages. `now` is in
  /// milliseconds.
  std::uint16_t egress_of(std::span<const std::uint8_t> frame, std::uint16_t ingress,
                          std::uint64_t now) {
    if (!is_open_ || resembles_ring_frame(frame)) {
      return take_the_stages();
    }
    return short_way(frame, ingress, now);
  }

 private:
  /// The addresses of an Ethernet header as numbers.
  struct Stations {
    std::uint64_t first = 0;
    std::uint32_t rest = 0;

    bool operator==(const Stations&) const = default;
  };

  /// Frames of a ring follow one another. One that looks like the last one takes the stages, where
  /// it is safe to be wrong.
  bool resembles_ring_frame(std::span<const std::uint8_t> frame) const {
    return addresses_of_ring_ != 0 && frame.size() >= wire::RoceV2Glance::kBth &&
           wire::RoceV2Glance(frame).addresses() == addresses_of_ring_;
  }

  std::uint16_t take_the_stages() { return port_ = frame::kNoPort; }

  std::uint16_t short_way(std::span<const std::uint8_t> frame, std::uint16_t ingress,
                          std::uint64_t now);
  static Stations stations_of(std::span<const std::uint8_t> frame);
  bool is_foreign(std::span<const std::uint8_t> frame);
  bool is_strangers(const wire::RoceV2Glance& roce);
  std::uint16_t look_up(std::span<const std::uint8_t> frame, std::uint16_t ingress,
                        std::uint64_t now);

  const ring::CurrentRings& current_;
  l2::Bridge& bridge_;
  const Dispatch& dispatch_;
  const Forward& forward_;

  bool is_open_ = false;
  // Of the frame before, if it went the short way in this burst.
  Stations stations_;
  std::uint16_t port_ = frame::kNoPort;
  // Of the last RoCE frames of this burst: a stranger's and a ring's; 0: there was none.
  std::uint64_t addresses_of_stranger_ = 0;
  std::uint64_t addresses_of_ring_ = 0;
};

} // namespace weir::stage
