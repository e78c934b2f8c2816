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

/// For so many frames at a time their headers are asked for.
inline constexpr std::size_t kFramesAhead = 8;

/// Their mbufs, which tell where the headers are, before that.
inline constexpr std::size_t kMbufsAhead = 2 * kFramesAhead;

// Ethernet up to the first half of the INA header.
inline constexpr std::uint32_t kHeaderBytes = 2 * frame::kCacheLine;

/// The place of the Frame, which is written unless the frame goes the fast path.
inline void prefetch_frame(rte_mbuf* mbuf) {
  frame::prefetch(rte_mbuf_to_priv(mbuf));
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

/// The frame's first bytes, where those of most drivers' are: behind mbuf, Frame and headroom. The
/// mbuf itself, which tells where they are, may not be there yet. A wrong guess does no harm.
inline void prefetch_probable_bytes(const rte_mbuf* mbuf, std::size_t bytes) {
  const auto* place = reinterpret_cast<const std::uint8_t*>(mbuf + 1);
  frame::prefetch_range(place + kFrameBytesInMbuf + RTE_PKTMBUF_HEADROOM, bytes);
}

/// What verification and reduction read.
template <frame::Cache kInto>
[[gnu::always_inline]] inline void prefetch_payload(std::span<const std::uint8_t> frame) {
  const std::size_t headers = std::min<std::size_t>(frame.size(), kHeaderBytes);
  frame::prefetch_range<kInto>(frame.data() + headers, frame.size() - headers);
}

/// The beginning of that.
[[gnu::always_inline]] inline void prefetch_start_of_payload(std::span<const std::uint8_t> frame) {
  constexpr std::size_t start = 640; // bytes, with the headers
  prefetch_payload<frame::Cache::first>(frame.first(std::min(frame.size(), start)));
}

/// Asks for what the frames of a burst need, in their order, while those before them are worked on.
/// All of a burst would be more than the first-level cache holds, and more than the CPU loads at a
/// time: a CPU may forget a prefetch that finds no room (docs/lab/packet-path.md, "Prefetches that
/// are forgotten"). `load` asks for what the frame at a place needs.
class LoadsAhead {
 public:
  /// Asks for the frames before this place that were not asked for.
  template <typename Load>
  [[gnu::always_inline]] void reach(std::size_t place, Load&& load) {
    while (next_ < place) {
      load(next_++);
    }
  }

  /// Asks for one frame more, if one before this place was not asked for. Said for each frame that
  /// is worked on, it stays as far ahead of them as it was before the first.
  template <typename Load>
  [[gnu::always_inline]] void step(std::size_t end, Load&& load) {
    if (next_ < end) {
      load(next_++);
    }
  }

 private:
  std::size_t next_ = 0;
};

/// The same for payloads, in two steps. Far ahead they are asked for into the second-level cache,
/// which loads more lines at a time than the first-level cache and has room for more. Near, their
/// beginnings are asked for from there: the CPU sees by itself that they go on.
class PayloadsAhead {
 public:
  static constexpr std::size_t kNearFrames = 2;

  /// So many bytes of some frame will be read.
  void expect(std::size_t bytes) {
    longest_ = std::max(longest_, static_cast<std::uint32_t>(bytes));
  }

  /// So many frames at a time far ahead. Fewer if some of those expected by now are long.
  std::size_t far_frames() const {
    return std::clamp<std::size_t>(kFarBytes / longest_, kLeastFar, kFramesAhead);
  }

  LoadsAhead far;
  LoadsAhead near;

 private:
  static constexpr std::uint32_t kFarBytes = 5000; // four frames of 1 KiB
  static constexpr std::uint32_t kLeastFar = 3;    // frames

  std::uint32_t longest_ = 1; // bytes
};

/// Calls `work` with each frame of a burst, which have been parsed, and prefetches all that the
/// next ones need meanwhile.
template <typename Work>
void for_each_parsed(std::span<rte_mbuf* const> burst, Work&& work) {
  constexpr std::size_t farthest = 16;
  constexpr std::size_t far = 6;
  constexpr std::size_t near = 2;
  LoadsAhead descriptions;
  LoadsAhead from_memory;
  LoadsAhead from_second_level;
  for (std::size_t place = 0; place < burst.size(); ++place) {
    descriptions.reach(std::min(place + farthest, burst.size()), [&](std::size_t later) {
      frame::prefetch(burst[later]);
      prefetch_frame(burst[later]);
    });
    from_memory.reach(std::min(place + far, burst.size()), [&](std::size_t soon) {
      const frame::Frame& frame = frame_of(burst[soon]); // by now it tells where its bytes are
      prefetch_header(frame.data);
      prefetch_payload<frame::Cache::second>(frame.bytes());
    });
    from_second_level.reach(std::min(place + near, burst.size()), [&](std::size_t soon) {
      prefetch_start_of_payload(frame_of(burst[soon]).bytes());
    });
    work(frame_of(burst[place]));
  }
}

} // namespace weir::lcore
