// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Prefetches what a burst will read, before its first frame is parsed. Otherwise each cache line
/// of an uncached frame costs a memory latency. By DPDK's functions: GCC leaves out the call of a
/// function that does nothing but __builtin_prefetch.

#include "frame/frame.hpp"
#include "lcore/mbuf_frame.hpp"

#include <rte_prefetch.h>

#include <cstdint>
#include <span>

namespace weir::lcore {

// Ethernet up to the first half of the INA header.
inline constexpr std::uint32_t kHeaderBytes = 2 * RTE_CACHE_LINE_SIZE;

/// The mbuf's first line and the Frame in its private area; both are written unless the frame goes
/// the fast path.
inline void prefetch_description(rte_mbuf* mbuf) {
  rte_prefetch0(mbuf);
  rte_prefetch0(rte_mbuf_to_priv(mbuf));
}

inline void prefetch_descriptions(std::span<rte_mbuf* const> burst) {
  for (rte_mbuf* mbuf : burst) {
    prefetch_description(mbuf);
  }
}

inline void prefetch_header(const std::uint8_t* data) {
  for (std::size_t at = 0; at < kHeaderBytes; at += RTE_CACHE_LINE_SIZE) {
    rte_prefetch0(data + at);
  }
}

/// What parse() reads.
inline void prefetch_headers(std::span<rte_mbuf* const> burst) {
  for (const rte_mbuf* mbuf : burst) {
    prefetch_header(rte_pktmbuf_mtod(mbuf, const std::uint8_t*));
  }
}

/// What verification and reduction read.
inline void prefetch_payload(std::span<const std::uint8_t> frame) {
  for (std::size_t at = kHeaderBytes; at < frame.size(); at += RTE_CACHE_LINE_SIZE) {
    rte_prefetch0(frame.data() + at);
  }
}

/// The payloads of a burst that are on their way into the first-level cache while earlier ones are
/// worked on. All of a burst would be more than the cache holds, and more than the CPU loads at a
/// time.
class PayloadsAhead {
 public:
  /// Of the burst's frames, the first `known` are known by now; `payload_of` gives what will be
  /// read of one.
  template <typename PayloadOf>
  void load_more(std::size_t known, PayloadOf&& payload_of) {
    for (; next_ < known && ahead_ < kBytes; ++next_) {
      const std::span<const std::uint8_t> payload = payload_of(next_);
      ahead_ += payload.size();
      prefetch_payload(payload);
    }
  }

  /// The next frame is worked on.
  void use(std::span<const std::uint8_t> payload) { ahead_ -= payload.size(); }

 private:
  static constexpr std::size_t kBytes = 9000; // two frames of 4 KiB, eight of 1 KiB

  std::size_t next_ = 0; // frame
  std::size_t ahead_ = 0;
};

/// Calls `work` with each frame of a burst, which have been parsed, and loads what it reads.
template <typename Work>
void for_each_parsed(std::span<rte_mbuf* const> burst, Work&& work) {
  prefetch_descriptions(burst);
  prefetch_headers(burst);
  const auto payload_of = [burst](std::size_t i) { return frame_of(burst[i]).bytes(); };
  PayloadsAhead payloads;
  for (rte_mbuf* mbuf : burst) {
    payloads.load_more(burst.size(), payload_of);
    payloads.use(frame_of(mbuf).bytes());
    work(frame_of(mbuf));
  }
}

/// Calls `work` with each frame in turn, and prefetches all that the next ones need meanwhile. For
/// frames that have been parsed and that no cache has any more: a burst's lines all at once would
/// be more than the CPU loads at a time, and the first frame would wait for the last.
template <typename Work>
void for_each_prefetched(std::span<frame::Frame* const> frames, Work&& work) {
  constexpr std::size_t far = 16;
  constexpr std::size_t near = 6; // by then the description tells where the bytes are
  for (std::size_t at = 0; at < frames.size() + far; ++at) {
    if (at < frames.size()) {
      prefetch_description(mbuf_of(*frames[at]));
    }
    if (const std::size_t soon = at - (far - near); soon < frames.size()) {
      prefetch_header(frames[soon]->data);
      prefetch_payload(frames[soon]->bytes());
    }
    if (const std::size_t next = at - far; next < frames.size()) {
      work(*frames[next]);
    }
  }
}

} // namespace weir::lcore
