// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// A Frame lives in the private area of the mbuf that holds its bytes. So neither needs a pointer
/// to the other.

#include "frame/frame.hpp"
#include "lcore/happens_before.hpp"

#include <rte_mbuf.h>

#include <cassert>
#include <cstdint>
#include <new>
#include <type_traits>

namespace weir::lcore {

/// A cache line, and what lies behind it begins with one too.
inline constexpr std::uint16_t kFrameBytesInMbuf = RTE_CACHE_LINE_SIZE;
static_assert(sizeof(frame::Frame) <= kFrameBytesInMbuf);
static_assert(sizeof(rte_mbuf) % RTE_CACHE_LINE_SIZE == 0);
static_assert(std::is_trivially_destructible_v<frame::Frame>);
static_assert(alignof(frame::Frame) <= RTE_MBUF_PRIV_ALIGN);

inline frame::Frame& frame_of(rte_mbuf* mbuf) {
  return *static_cast<frame::Frame*>(rte_mbuf_to_priv(mbuf));
}

inline rte_mbuf* mbuf_of(frame::Frame& frame) {
  return reinterpret_cast<rte_mbuf*>(&frame) - 1;
}

/// The frame of a contiguous mbuf that has just been received on port `ingress`, with what is known
/// of its packet.
inline frame::Frame& make_frame(rte_mbuf* mbuf, std::uint16_t ingress,
                                const wire::Packet& packet = {}) {
  assert(rte_mbuf_refcnt_read(mbuf) != 0);
  takes_over(mbuf); // from whoever freed it last
  return *new (rte_mbuf_to_priv(mbuf)) frame::Frame{
      {.data = rte_pktmbuf_mtod(mbuf, std::uint8_t*), .length = mbuf->pkt_len, .packet = packet},
      ingress};
}

/// Frees the mbuf and the Frame in it.
inline void free_mbuf(rte_mbuf* mbuf) {
  assert(rte_mbuf_refcnt_read(mbuf) != 0);
  hands_over(mbuf);
  rte_pktmbuf_free(mbuf);
}

} // namespace weir::lcore
