// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "wire/headers.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace weir::wire {

struct ArpMessage { // RFC 826, for Ethernet and IPv4
  be16 hardware;
  be16 protocol;
  std::uint8_t hardware_bytes;
  std::uint8_t protocol_bytes;
  be16 operation;
  MacAddress sender_mac;
  std::array<std::uint8_t, 4> sender_ip;
  MacAddress target_mac;
  std::array<std::uint8_t, 4> target_ip;
};

static_assert(sizeof(ArpMessage) == 28);

/// Who has an address, and who asks.
struct ArpRequest {
  std::size_t at = 0; // of the message in its frame
  IpAddress wanted;
};

/// An ARP request, behind tags or not. at: 0 when the frame is none.
ArpRequest find_arp_request(std::span<const std::uint8_t> frame);

/// Whose address the sender of an ARP message, a request or not, says it has. An announcement says
/// no more (RFC 5227 §3). None of another frame. Whatever hardware it is for: Linux takes that of
/// IEEE 802 for Ethernet's.
std::optional<IpAddress> claimed_by_arp(std::span<const std::uint8_t> frame);

/// Makes of a frame with a request the answer that this station has the address.
void answer_arp(std::span<std::uint8_t> frame, const ArpRequest& request, const MacAddress& mac);

} // namespace weir::wire
