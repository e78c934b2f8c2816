// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/frame.hpp"
#include "l2/bridge.hpp"
#include "ring/current_rings.hpp"
#include "stage/dispatch.hpp"
#include "stage/forward.hpp"
#include "stage/graph_watch.hpp"
#include "wire/glance.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace weir::stage {

/// The shortcut of frames that are certainly none of a ring's: one that leaves by one port needs no
/// frame::Frame, so its mbuf's private area need not be read or written. It does what Receive,
/// Dispatch and Forward do to such a frame. All other frames take the stages. One per lcore.
///
/// Frames come in bursts from one port. What the frame before showed of its addresses holds for the
/// next one too: nobody else has used the bridge since on this lcore. Once a frame takes the stages
/// that may be forwarded by them, all later ones of the burst do, so that none overtakes it.
class L2FastPath {
 public:
  L2FastPath(const ring::CurrentRings& current, l2::Bridge& bridge, const Dispatch& dispatch,
             const Forward& forward);

  /// Said before the first frame of a burst.
  void begin_burst();

  /// From now on all frames of this burst take the stages.
  void close() { is_open_ = false; }

  /// The port that the frame leaves by, as it came. Its source has been learnt then, and all that
  /// is left is to count and transmit it. frame::kNoPort: it takes the stages. `now` is in
  /// milliseconds.
  std::uint16_t egress_of(std::span<const std::uint8_t> frame, std::uint16_t ingress,
                          std::uint64_t now) {
    if (!is_open_ || frame.size() < wire::RoceV2Glance::kLeast) {
      return take_the_stages();
    }
    const Signature signature = signature_of(frame);
    if (port_ != frame::kNoPort && signature == last_ && goes_with_last(frame)) {
      return passed();
    }
    if (signature.addresses == addresses_of_ring_) { // a ring's frames follow one another
      return take_the_stages();
    }
    return check(frame, signature, ingress, now);
  }

 private:
  /// 255.255.255.255 twice: no neighbours, since a ring's addresses differ.
  static constexpr std::uint64_t kNone = UINT64_MAX;

  /// Parts of a frame that starts as the most usual kind does. Two frames with the same signature
  /// have the same stations and the same wire::Glance.
  struct Signature {
    std::uint64_t destination_and_source = 0; // the first bytes of it
    std::uint64_t source_and_type = 0;        // the rest of it; also IP's version and length
    std::uint64_t addresses = 0;              // IPv4
    std::uint16_t udp_destination = 0;
    std::uint8_t protocol = 0;

    bool operator==(const Signature& other) const {
      return destination_and_source == other.destination_and_source &&
             source_and_type == other.source_and_type && addresses == other.addresses &&
             udp_destination == other.udp_destination && protocol == other.protocol;
    }

    bool has_stations_of(const Signature& other) const {
      constexpr std::uint64_t source = 0xffff'ffff;
      return destination_and_source == other.destination_and_source &&
             ((source_and_type ^ other.source_and_type) & source) == 0;
    }
  };

  static Signature signature_of(std::span<const std::uint8_t> frame) {
    using Roce = wire::RoceV2Glance;
    const std::uint8_t* at = frame.data();
    return {load<std::uint64_t>(at), load<std::uint64_t>(at + sizeof(std::uint64_t)),
            Roce(frame).addresses(),
            load<std::uint16_t>(at + Roce::kUdp + offsetof(wire::UdpHeader, destination_port)),
            at[Roce::kIp + offsetof(wire::Ipv4Header, protocol)]};
  }

  template <typename Number>
  static Number load(const std::uint8_t* bytes) {
    Number number = 0;
    std::memcpy(&number, bytes, sizeof number);
    return number;
  }

  /// For a frame with the last one's signature.
  bool goes_with_last(std::span<const std::uint8_t> frame) const {
    return forward_.fits_all(frame.size()) &&
           (!is_last_roce_ || !wire::RoceV2Glance(frame).may_have_ina_header());
  }

  std::uint16_t take_the_stages() { return port_ = frame::kNoPort; }

  std::uint16_t passed() const {
    count_taken(ShortcutId::l2_fast_path);
    return port_;
  }

  std::uint16_t check(std::span<const std::uint8_t> frame, const Signature& signature,
                      std::uint16_t ingress, std::uint64_t now);
  bool is_foreign(std::span<const std::uint8_t> frame, std::uint16_t ingress);
  bool is_strangers(const wire::RoceV2Glance& roce);
  std::uint16_t look_up(std::span<const std::uint8_t> frame, std::uint16_t ingress,
                        std::uint64_t now);

  const ring::CurrentRings& current_;
  l2::Bridge& bridge_;
  const Dispatch& dispatch_;
  const Forward& forward_;

  bool is_open_ = false;
  // Of the frame before, if it went the fast path in this burst.
  Signature last_;
  bool is_last_roce_ = false;
  std::uint16_t port_ = frame::kNoPort;
  // Of the last RoCE frames of this burst: a stranger's and a ring's.
  std::uint64_t addresses_of_stranger_ = kNone;
  std::uint64_t addresses_of_ring_ = kNone;
};

} // namespace weir::stage
