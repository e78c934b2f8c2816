// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "wire/headers.hpp"
#include "wire/opcode.hpp"
#include "wire/packet.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace weir::recovery {

inline constexpr std::size_t kMostIpv4HeaderBytes = 60; // RFC 791 §3.1: 15 words

/// The headers that all frames of one direction of a connection share, from Ethernet to BTH, taken
/// from one of them. Tags, IP options, partition key and traffic class stay as they were.
class FrameTemplate {
 public:
  /// parse() takes no longer headers: all tags, IPv4 with all options, UDP, BTH.
  static constexpr std::size_t kMostBytes =
      sizeof(wire::EthernetHeader) + wire::kMaxVlanTags * sizeof(wire::VlanTag) +
      kMostIpv4HeaderBytes + sizeof(wire::UdpHeader) + sizeof(wire::Bth);

  FrameTemplate() = default;

  explicit FrameTemplate(const wire::ParsedBytes& frame);

  /// For the opposite direction, to this queue pair: source and destination change places. It is
  /// unmarked.
  static FrameTemplate opposite(const wire::ParsedBytes& frame, std::uint32_t destination_qp);

  /// Without the mark that a congested switch put on this one frame (RFC 3168 §5): what the
  /// template makes later has not met that congestion.
  FrameTemplate unmarked() const;

  /// Takes the Ethernet header and the tags of another template for the same direction, if it has
  /// the same encapsulation and as many tags. No ICRC covers these (IBTA annex A17.3.3): what
  /// damages them goes unseen, and frames that are made with them arrive nowhere.
  void take_link_header(const FrameTemplate& other);

  bool is_empty() const { return bytes_ == 0; }

  /// Where the headers end that the template has.
  std::size_t bytes() const { return bytes_; }

  /// Writes the headers into an empty frame and returns its BTH. Of the
  /// flags it has MigReq and TVer.
  wire::Bth& start(wire::ParsedBytes& frame, wire::Opcode opcode, std::uint32_t psn) const;

  /// Writes the lengths of a frame that start() began and whose pad ends at `end`, and describes it
  /// in frame.packet. The ICRC is the caller's.
  void finish(wire::ParsedBytes& frame, std::size_t end) const;

 private:
  std::array<std::uint8_t, kMostBytes> headers_{};
  std::uint16_t bytes_ = 0;
  wire::Packet packet_; // offsets and encapsulation
};

} // namespace weir::recovery
