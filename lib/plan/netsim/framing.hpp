// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace weir::netsim {

/// How a message becomes packets, and how many packets are simulated as one.
struct Framing {
  std::uint32_t payload_bytes = 256; // of a full packet
  std::uint32_t header_bytes = 16;
  std::uint32_t unit_bytes = 16; // a payload takes whole units (flits)

  /// What has a header: each packet, or the whole message (MultiTree §IV-B, MULTITREEMSG).
  enum class Headers : std::uint8_t { every_packet, every_message };
  Headers headers = Headers::every_packet;

  /// Packets of a message that travel as one: 1 simulates each packet, more a wave, 0 the whole
  /// message. More are faster to simulate and less exact.
  std::uint32_t packets_at_once = 1;

  /// An empty message is one packet.
  std::uint64_t packets_of(std::uint64_t message_bytes) const {
    return message_bytes == 0 ? 1 : (message_bytes + payload_bytes - 1) / payload_bytes;
  }

  /// Bytes on the wire of all of a message's packets.
  std::uint64_t wire_bytes(std::uint64_t message_bytes) const {
    const std::uint64_t headers_sent =
        headers == Headers::every_packet ? packets_of(message_bytes) : 1;
    return whole_units(message_bytes) + headers_sent * header_bytes;
  }

  /// Full packets are whole units, so only a message's last packet is rounded up.
  std::uint64_t whole_units(std::uint64_t bytes) const {
    return (bytes + unit_bytes - 1) / unit_bytes * unit_bytes;
  }
};

} // namespace weir::netsim
