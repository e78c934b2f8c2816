// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The invariant CRC of docs/protocol.md §6 (IBTA §7.8.1 and annex A17.3.3). Every function needs a
/// frame that parse() found to be `transport` or `message`.

#include "wire/packet.hpp"

#include <cstdint>

namespace weir::wire {

std::uint32_t compute_icrc(const ParsedBytes& frame);
std::uint32_t stored_icrc(const ParsedBytes& frame);
void store_icrc(ParsedBytes& frame, std::uint32_t icrc);

inline bool icrc_is_valid(const ParsedBytes& frame) {
  return compute_icrc(frame) == stored_icrc(frame);
}

/// Verifies the ICRC of a `message` frame, once, and stores the outcome in the frame. An ICRC is
/// linear: when only the payload changes, the ICRC changes by (frame.payload_crc xor the CRC of the
/// new payload and pad), whatever the headers are.
bool verify_icrc(ParsedBytes& frame);

/// The CRC of the ICRC's input before frame offset `end`, which lies after the BTH: 8 bytes of
/// ones, then the frame from its IP header. Fields that routers may change are read as ones.
std::uint32_t icrc_prefix(const ParsedBytes& frame, std::size_t end);

} // namespace weir::wire
