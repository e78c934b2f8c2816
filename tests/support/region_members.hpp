// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The packets of a region's members, each behind the port of its number (docs/protocol.md §13).

#include "region/region_table.hpp"
#include "support/frame_builder.hpp"
#include "wire/psn.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace weir::test {

inline region::Address regions_address() {
  return {*wire::parse_ip("10.9.0.254"), *wire::parse_mac("02:57:45:00:00:01")};
}

class RegionMembers {
 public:
  /// Numbers and addresses differ by the region's id, below 16.
  explicit RegionMembers(std::uint32_t id, std::uint16_t members = 3) {
    spec.id = id;
    spec.bytes = 65536;
    birth.base = kRethAddress;
    birth.multicast_key = kRethKey;
    for (std::uint16_t member = 0; member < members; ++member) {
      spec.members.push_back({.ip = ip_of(member),
                              .port = member,
                              .queue_pair = 0x500u + member,
                              .first_psn = kFirstPsn,
                              .base = std::uint64_t{0x100000} * (member + 1),
                              .key = member + 1u});
      birth.members.push_back({.queue_pair = 0x10 * id + member + 2, .first_psn = kSwitchPsn});
    }
  }

  wire::IpAddress ip_of(std::uint16_t member) const {
    return *wire::parse_ip("10.9." + std::to_string(spec.id) + "." + std::to_string(member + 1));
  }

  FrameSpec frame_of(std::uint16_t member) const {
    FrameSpec frame;
    frame.source_mac = {{0x02, 0x09, 0, 0, static_cast<std::uint8_t>(spec.id),
                         static_cast<std::uint8_t>(member + 1)}};
    frame.destination_mac = regions_address().mac;
    frame.source = ip_of(member);
    frame.destination = regions_address().ip;
    frame.opcode = kWriteOnly;
    frame.qp = birth.members[member].queue_pair;
    frame.psn = kFirstPsn;
    return frame;
  }

  Built hello(std::uint16_t member) const {
    FrameSpec frame = frame_of(member);
    frame.payload = Bytes(region::kTokenBytes, 0);
    return build(frame);
  }

  /// The member's next write, to the region's beginning.
  std::vector<Built> write(std::uint16_t member, const Bytes& bytes) {
    std::vector<Built> packets;
    for (std::size_t at = 0; at == 0 || at < bytes.size(); at += spec.mtu) {
      const bool is_last = at + spec.mtu >= bytes.size();
      FrameSpec frame = frame_of(member);
      frame.opcode =
          is_last ? (at == 0 ? kWriteOnly : kWriteLast) : (at == 0 ? kWriteFirst : kWriteMiddle);
      frame.psn = wire::psn_add(kFirstPsn, ++written_[member]);
      frame.dma_length = static_cast<std::uint32_t>(bytes.size());
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
      frame.payload.assign(begin, begin + static_cast<std::ptrdiff_t>(
                                              std::min<std::size_t>(spec.mtu, bytes.size() - at)));
      packets.push_back(build(frame));
    }
    return packets;
  }

  /// An answer to the switch's copy of this number, from 0 on; `syndrome` as in an AETH.
  Built answer(std::uint16_t member, std::uint8_t syndrome, std::uint32_t copy) const {
    FrameSpec frame = frame_of(member);
    frame.opcode = kAcknowledge;
    frame.psn = kSwitchPsn + copy;
    frame.aeth = std::uint32_t{syndrome} << 24U;
    return build(frame);
  }

  Built congestion_notification(std::uint16_t member) const {
    FrameSpec frame = frame_of(member);
    frame.opcode = kCongestion;
    frame.psn = 0;
    frame.payload = Bytes(16, 0);
    return build(frame);
  }

  region::RegionSpec spec;
  region::RegionBirth birth;

 private:
  static constexpr std::uint64_t kRethAddress = 0x7f0010203040; // of all frames that are built
  static constexpr std::uint32_t kRethKey = 0x5eed;             // likewise
  static constexpr std::uint32_t kFirstPsn = 0xfffff0;
  static constexpr std::uint32_t kSwitchPsn = 7;
  static constexpr std::uint8_t kWriteFirst = 0x06; // IBTA table 38, also below
  static constexpr std::uint8_t kWriteMiddle = 0x07;
  static constexpr std::uint8_t kWriteLast = 0x08;
  static constexpr std::uint8_t kWriteOnly = 0x0a;
  static constexpr std::uint8_t kAcknowledge = 0x11;
  static constexpr std::uint8_t kCongestion = 0x81;

  std::map<std::uint16_t, std::uint32_t> written_; // packets
};

} // namespace weir::test
