// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "wire/packet.hpp"

#include <optional>
#include <span>

namespace weir::wire {

/// Parses a frame from Ethernet to the transport headers, and overwrites `packet` with what it
/// finds. Never reads past the span. What it does not understand is Parsed::other.
///
/// It writes in place because a packet's fields are narrow. A CPU cannot forward several narrow
/// stores to the wide loads of a copy, so a copy would wait for all of them.
void parse(std::span<const std::uint8_t> frame, Packet& packet);

inline Packet parse(std::span<const std::uint8_t> frame) {
  Packet packet;
  parse(frame, packet);
  return packet;
}

/// The INA header of a message packet that starts a message, is long enough and has the magic; else
/// nullptr.
const InaHeader* find_ina_header(const ParsedBytes& frame);

/// Whether the message is a hello or a hello's result: it carries no data.
bool is_hello(const ParsedBytes& frame, const InaHeader& ina);

} // namespace weir::wire
