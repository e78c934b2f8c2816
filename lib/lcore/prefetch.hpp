// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Prefetches what a burst will read, before its first frame is parsed. Otherwise each cache line
/// of an uncached frame costs a memory latency.

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

/// The mbuf's first line, and the Frame in its private area, which is written unless the frame goes
/// the fast path.
inline void prefetch_description(rte_mbuf* mbuf) {
  frame::prefetch(mbuf);
  frame::prefetch(rte_mbuf_to_priv(mbuf));
}

inline void prefetch_mbufs(std::span<rte_mbuf* const> burst) {
  for (const rte_mbuf* mbuf : burst) {
    frame::prefetch(mbuf);
  }
}

inline void prefetch_frames(std::span<rte_mbuf* const> burst) {
  for (rte_mbuf* mbuf : burst) {
    frame::prefetch(rte_mbuf_to_priv(mbuf));
  }
}

inline void prefetch_header(const std::uint8_t* data) {
  frame::prefetch_range(data, kHeaderBytes);
}

/// What parse() reads.
inline void prefetch_headers(std::span<rte_mbuf* const> burst) {
  for (const rte_mbuf* mbuf : burst) {
    prefetch_header(rte_pktmbuf_mtod(mbuf, const std::uint8_t*));
  }
}

/// What verification and reduction read.
inline void prefetch_payload(std::span<const std::uint8_t> frame) {
  const std::size_t headers = std::min<std::size_t>(frame.size(), kHeaderBytes);
  frame::prefetch_range(frame.data() + headers, frame.size() - headers);
}

/// The payloads of a burst that are on their way into the first-level cache while earlier ones are
/// worked on. All of a burst would be more than the cache holds, and more than the CPU loads at a
/// time.
class PayloadsAhead {
 public:
  /// `frames` are those of the burst that are known by now, in order.
  template <typename Frames>
  void load_more(const Frames& frames) {
    for (; next_ < frames.size() && ahead_ < kBytes; ++next_) {
      ahead_ += frames[next_].load();
    }
  }

  /// The next frame, of which so many bytes were to be read, is worked on.
  void use(std::size_t bytes) { ahead_ -= bytes; }

 private:
  static constexpr std::size_t kBytes = 9000; // two frames of 4 KiB, eight of 1 KiB

  std::size_t next_ = 0; // frame
  std::size_t ahead_ = 0;
};

/// A burst of frames that have been parsed, for PayloadsAhead.
struct ParsedBurst {
  struct Parsed {
    const frame::Frame& frame;

    std::size_t load() const {
      prefetch_payload(frame.bytes());
      return frame.length;
    }
  };

  std::span<rte_mbuf* const> mbufs;

  std::size_t size() const { return mbufs.size(); }

  Parsed operator[](std::size_t place) const { return {frame_of(mbufs[place])}; }
};

/// Calls `work` with each frame of a burst, which have been parsed, and loads what it reads.
template <typename Work>
void for_each_parsed(std::span<rte_mbuf* const> burst, Work&& work) {
  prefetch_mbufs(burst);
  prefetch_frames(burst);
  prefetch_headers(burst);
  PayloadsAhead payloads;
  for (rte_mbuf* mbuf : burst) {
    payloads.load_more(ParsedBurst{burst});
    payloads.use(frame_of(mbuf).length);
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
