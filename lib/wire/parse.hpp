// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "wire/packet.hpp"

#include <optional>
#include <span>

namespace weir::wire {

/// Parses a frame from Ethernet to the transport headers. Never reads past the span. What it does
/// not understand is Parsed::other.
Packet parse(std::span<const std::uint8_t> frame);

/// The INA header of a message packet that starts a message, is long enough and has the magic; else
/// nullptr.
const InaHeader* find_ina_header(const ParsedBytes& frame);

/// Whether the message is a hello or a hello's result: it carries no data.
bool is_hello(const ParsedBytes& frame, const InaHeader& ina);

} // namespace weir::wire
