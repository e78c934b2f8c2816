// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The invariant CRC of docs/protocol.md §6 (IBTA §7.8.1 and annex A17.3.3). Every call wants a
/// frame that parse took for transport or message.

#include "wire/packet.hpp"

#include <cstdint>

namespace weir::wire {

std::uint32_t compute_icrc(const Frame& frame);
std::uint32_t stored_icrc(const Frame& frame);
void store_icrc(Frame& frame, std::uint32_t icrc);

inline bool icrc_is_valid(const Frame& frame) {
  return compute_icrc(frame) == stored_icrc(frame);
}

/// The part of the ICRC in front of frame offset `end`: 8 bytes of ones and the headers with the
/// fields that routers may change read as ones. `end` lies at most kMaxIcrcPrefix past the IP
/// header.
std::uint32_t icrc_prefix(const Frame& frame, std::size_t end);
inline constexpr std::size_t kMaxIcrcPrefix = 60 + 8 + 12 + 20 + kInaHeaderBytes;

} // namespace weir::wire
