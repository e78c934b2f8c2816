// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "lcore/prefetch.hpp"
#include "stage/flow_cache.hpp"

#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::lcore {

/// Frames that are taken at once from a place where they arrive.
inline constexpr unsigned kBurst = 32;

/// A frame of a burst that has not left by the fast path. Without initial values: a burst's array
/// of these would be cleared each time.
struct Kept {
  rte_mbuf* mbuf;
  stage::FlowCacheEntry* entry; // of its connection; nullptr: it is parsed
  const std::uint8_t* bytes;    // of the frame, if its payload will be read
  std::size_t size;             // likewise; else 0

  std::span<const std::uint8_t> payload() const { return {bytes, size}; }
};

/// What a receive queue gave at once, on its way to the worker.
struct Burst {
  std::uint16_t port = 0; // that it came in by
  std::size_t received = 0;
  std::size_t kept_size = 0;
  std::array<rte_mbuf*, kBurst + kMbufsAhead> mbufs; // `received` of them, then the last one again
  std::array<Kept, kBurst> kept;                     // in the order of arrival
  PayloadsAhead payloads;                            // of those that are kept
  bool loads_slots = false;                          // of those that have flow cache entries

  std::span<rte_mbuf* const> all() const { return std::span(mbufs).first(received); }

  /// For mbufs that have come by this port. The last one is repeated, so that who prefetches need
  /// not know where the burst ends.
  void begin(std::uint16_t from) {
    assert(received != 0 && received <= kBurst);
    port = from;
    kept_size = 0;
    payloads = {};
    loads_slots = false;
    std::fill_n(mbufs.begin() + received, kMbufsAhead, mbufs[received - 1]);
  }

  void keep(rte_mbuf* mbuf, stage::FlowCacheEntry* entry, std::span<const std::uint8_t> payload) {
    assert(kept_size < kBurst);
    kept[kept_size++] = {mbuf, entry, payload.data(), payload.size()};
  }
};

} // namespace weir::lcore
