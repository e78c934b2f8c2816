// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The invariant CRC of docs/protocol.md §6 (IBTA §7.8.1 and annex A17.3.3). Every call wants a
/// frame that parse took for transport or message.

#include "wire/packet.hpp"

#include <cstdint>

namespace weir::wire {

std::uint32_t compute_icrc(const ParsedBytes& frame);
std::uint32_t stored_icrc(const ParsedBytes& frame);
void store_icrc(ParsedBytes& frame, std::uint32_t icrc);

inline bool icrc_is_valid(const ParsedBytes& frame) {
  return compute_icrc(frame) == stored_icrc(frame);
}

/// Verifies the ICRC of a frame that parse took for message, unless that has been done, and leaves
/// in the frame what it found. An ICRC is linear: where only the payload changes, it changes by
/// (frame.payload_crc xor the CRC of new payload and pad), whatever stands before it.
bool verify_icrc(ParsedBytes& frame);

/// The part of the ICRC in front of frame offset `end`, which lies past the BTH: 8 bytes of ones
/// and then the frame from its IP header with the fields that routers may change read as ones.
std::uint32_t icrc_prefix(const ParsedBytes& frame, std::size_t end);

} // namespace weir::wire
