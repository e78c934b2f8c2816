// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/error.hpp"
#include "host/transport/transport.hpp"
#include "wire/big_endian.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::host {

/// What neighbours must know about a channel's queue pairs and inbox, for every transport. The
/// transport's own address precedes it in the blob that ranks exchange.
struct ChannelNumbers {
  wire::be32 outgoing_number;
  wire::be32 outgoing_psn;
  wire::be32 incoming_number;
  wire::be32 incoming_psn;
  wire::be32 inbox_key;
  wire::be64 inbox_base;
};

/// The address of one channel among the neighbour's. Throws Error (mismatch) when the blob does not
/// have `channels` of them.
template <typename ChannelAddress>
const ChannelAddress& channel_address(const Neighbour& neighbour, std::size_t channel,
                                      std::size_t channels) {
  const auto& [rank, blob] = neighbour;
  static_assert(alignof(ChannelAddress) == 1);
  if (blob.size() != channels * sizeof(ChannelAddress)) {
    throw Error(ErrorCode::mismatch, rank,
                fmt::format("rank {} sent {} bytes of addresses; due are {}", rank, blob.size(),
                            channels * sizeof(ChannelAddress)));
  }
  return wire::view_as<ChannelAddress>(blob.data() + channel * sizeof(ChannelAddress));
}

} // namespace weir::host
