// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Prefetches what a burst will read, before its first frame is parsed. Otherwise each cache line
/// of an uncached frame costs a memory latency.

#include "frame/frame.hpp"
#include "lcore/mbuf_frame.hpp"

#include <rte_prefetch.h>

#include <cstdint>
#include <span>

namespace weir::lcore {

// Ethernet up to the first half of the INA header.
inline constexpr std::uint32_t kHeaderBytes = 2 * RTE_CACHE_LINE_SIZE;

/// The mbufs' first lines and the Frames in their private areas; both are written unless the frame
/// goes the fast path.
inline void prefetch_descriptions(std::span<rte_mbuf* const> burst) {
  for (rte_mbuf* mbuf : burst) {
    __builtin_prefetch(mbuf, 1);
    auto* frame = static_cast<const std::uint8_t*>(rte_mbuf_to_priv(mbuf));
    for (std::size_t at = 0; at < kFrameBytesInMbuf; at += RTE_CACHE_LINE_SIZE) {
      __builtin_prefetch(frame + at, 1);
    }
  }
}

/// What parse() reads.
inline void prefetch_headers(std::span<rte_mbuf* const> burst) {
  for (const rte_mbuf* mbuf : burst) {
    const auto* data = rte_pktmbuf_mtod(mbuf, const std::uint8_t*);
    for (std::size_t at = 0; at < kHeaderBytes; at += RTE_CACHE_LINE_SIZE) {
      rte_prefetch0(data + at);
    }
  }
}

/// What verification and reduction read. Into the second-level cache: the payloads of a burst do
/// not fit the first.
inline void prefetch_payload(const frame::Frame& frame) {
  for (std::uint32_t at = kHeaderBytes; at < frame.length; at += RTE_CACHE_LINE_SIZE) {
    rte_prefetch1(frame.data + at);
  }
}

/// All of these, for frames that have been parsed.
inline void prefetch_frames(std::span<rte_mbuf* const> burst) {
  prefetch_descriptions(burst);
  prefetch_headers(burst);
  for (rte_mbuf* mbuf : burst) {
    prefetch_payload(frame_of(mbuf));
  }
}

} // namespace weir::lcore
