// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Prefetches what a burst will read. Otherwise each cache line of an uncached frame costs a memory
/// latency.

#include "frame/frame.hpp"
#include "frame/prefetch.hpp"
#include "lcore/mbuf_frame.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::lcore {

// Ethernet up to the first half of the INA header.
inline constexpr std::uint32_t kHeaderBytes = 2 * frame::kCacheLine;

/// The place of the Frame, which is written unless the frame goes the fast path.
inline void prefetch_frame(rte_mbuf* mbuf) {
  frame::prefetch(rte_mbuf_to_priv(mbuf));
}

inline void prefetch_mbufs(std::span<rte_mbuf* const> burst) {
  for (const rte_mbuf* mbuf : burst) {
    frame::prefetch(mbuf);
  }
}

/// What parse() reads.
inline void prefetch_header(const std::uint8_t* data) {
  frame::prefetch_range(data, kHeaderBytes);
}

inline void prefetch_header_of(const rte_mbuf* mbuf) {
  prefetch_header(rte_pktmbuf_mtod(mbuf, const std::uint8_t*));
}

inline void prefetch_headers(std::span<rte_mbuf* const> burst) {
  std::ranges::for_each(burst, prefetch_header_of);
}

/// What verification and reduction read.
inline void prefetch_payload(std::span<const std::uint8_t> frame) {
  const std::size_t headers = std::min<std::size_t>(frame.size(), kHeaderBytes);
  frame::prefetch_range(frame.data() + headers, frame.size() - headers);
}

/// What of a burst is on its way into the first-level cache while its earlier frames are worked on.
/// All of a burst would be more than the cache holds, and more than the CPU loads at a time: a CPU
/// may forget a prefetch that finds no room (docs/performance.md, "Prefetches that are forgotten").
class LoadsAhead {
 public:
  /// So many frames of the burst are known by now. `load` asks for what is read of one, by its
  /// place in the burst, and returns how many bytes that is.
  template <typename Load>
  void load_more(std::size_t known, Load&& load) {
    for (; next_ < known && next_ < used_ + kFrames && ahead_ < kBytes; ++next_) {
      ahead_ += load(next_);
    }
  }

  /// The next frame, of which so many bytes were to be read, is worked on.
  void use(std::size_t bytes) {
    ++used_;
    ahead_ -= bytes;
  }

 private:
  static constexpr std::size_t kFrames = 8;
  static constexpr std::size_t kBytes = 9000; // two frames of 4 KiB

  std::size_t next_ = 0; // frame
  std::size_t used_ = 0; // frames
  std::size_t ahead_ = 0;
};

/// Calls `work` with each frame of a burst, which have been parsed, and prefetches all that the
/// next ones need meanwhile.
template <typename Work>
void for_each_parsed(std::span<rte_mbuf* const> burst, Work&& work) {
  constexpr std::size_t far = 16;
  constexpr std::size_t near = 6; // by then the description tells where the bytes are
  for (std::size_t at = 0; at < burst.size() + far; ++at) {
    if (at < burst.size()) {
      frame::prefetch(burst[at]);
      prefetch_frame(burst[at]);
    }
    if (const std::size_t soon = at - (far - near); soon < burst.size()) {
      const frame::Frame& frame = frame_of(burst[soon]);
      prefetch_header(frame.data);
      prefetch_payload(frame.bytes());
    }
    if (const std::size_t next = at - far; next < burst.size()) {
      work(frame_of(burst[next]));
    }
  }
}

} // namespace weir::lcore
