// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/error.hpp"
#include "wire/big_endian.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::host {

/// What neighbours must know about a lane's queue pairs and inbox, for every transport. The
/// transport's own address precedes it in the blob that ranks exchange.
struct LaneNumbers {
  wire::be32 outgoing_number;
  wire::be32 outgoing_psn;
  wire::be32 incoming_number;
  wire::be32 incoming_psn;
  wire::be32 inbox_key;
  wire::be64 inbox_base;
};

/// The address of one lane in the blob of `rank`. Throws Error (mismatch) when the blob does not
/// have `lanes` of them.
template <typename LaneAddress>
const LaneAddress& lane_address(std::span<const std::uint8_t> blob, std::size_t lane,
                                std::size_t lanes, std::uint16_t rank) {
  static_assert(alignof(LaneAddress) == 1);
  if (blob.size() != lanes * sizeof(LaneAddress)) {
    throw Error(ErrorCode::mismatch, rank,
                fmt::format("rank {} sent {} bytes of addresses; due are {}", rank, blob.size(),
                            lanes * sizeof(LaneAddress)));
  }
  return wire::view_as<LaneAddress>(blob.data() + lane * sizeof(LaneAddress));
}

} // namespace weir::host
