// SPDX-License-Identifier: BSD-3-Clause
#include "frame_stock.hpp"
#include "pipeline.hpp"

#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

namespace weir::bench {
namespace {

constexpr std::uint16_t kHeaderBytes = 58; // Ethernet, IPv4, UDP, BTH, and what alignment there is
constexpr std::uint16_t kTailBytes = 4;    // ICRC
constexpr std::uint16_t kRanks = 8;
constexpr std::size_t kFrames = 4096;

/// The mbufs that each way of sending a result needs.
struct Supplies {
  explicit Supplies(std::uint16_t payload)
      : frames(make_pool("bench_frames", kFrames, 128u + payload)),
        segments(rte_pktmbuf_pool_create("bench_segments", 16384, 256, 0, RTE_PKTMBUF_HEADROOM + 64,
                                         SOCKET_ID_ANY)) {}

  Pool frames;
  Pool segments;
};

/// Frames of all ranks with the result copied into each.
void copy(std::vector<rte_mbuf*>& frames, rte_mbuf* result, std::uint16_t payload) {
  for (rte_mbuf* frame : frames) {
    std::memcpy(rte_pktmbuf_mtod_offset(frame, void*, kHeaderBytes),
                rte_pktmbuf_mtod(result, void*), payload);
  }
}

/// Frames whose middle is the one result, by reference, and whose ICRC is a segment of its own. A
/// burst of them is sent, then the segments are given back, as a NIC's driver does.
void chain(std::vector<rte_mbuf*>& frames, rte_mbuf* result, std::uint16_t payload,
           rte_mempool* segments) {
  std::array<rte_mbuf*, 2 * kRanks> parts;
  for (std::size_t at = 0; at < frames.size(); at += kRanks) {
    rte_pktmbuf_alloc_bulk(segments, parts.data(), parts.size());
    for (std::uint16_t rank = 0; rank < kRanks; ++rank) {
      rte_mbuf* frame = frames[at + rank];
      rte_mbuf* body = parts[2u * rank];
      rte_mbuf* tail = parts[2u * rank + 1];
      rte_pktmbuf_attach(body, result);
      const auto* icrc = rte_pktmbuf_mtod_offset(frame, const void*, kHeaderBytes + payload);
      std::memcpy(rte_pktmbuf_append(tail, kTailBytes), icrc, kTailBytes);
      frame->data_len = kHeaderBytes;
      frame->next = body;
      body->next = tail;
      frame->nb_segs = 3;
    }
    for (std::uint16_t rank = 0; rank < kRanks; ++rank) {
      free_shared_segments(*frames[at + rank]);
      frames[at + rank]->data_len = static_cast<std::uint16_t>(kHeaderBytes + payload + kTailBytes);
    }
  }
}

void measure(std::uint16_t payload, const Case& parameters, unsigned round) {
  const Supplies supplies(payload);
  std::vector<rte_mbuf*> frames(kFrames);
  rte_pktmbuf_alloc_bulk(supplies.frames.get(), frames.data(), kFrames);
  for (rte_mbuf* frame : frames) {
    rte_pktmbuf_append(frame, static_cast<std::uint16_t>(kHeaderBytes + payload + kTailBytes));
  }
  rte_mbuf* result = rte_pktmbuf_alloc(supplies.frames.get());
  rte_pktmbuf_append(result, payload);
  // Twice each: the first is for the caches, that is, for what the frames' verification leaves
  // there.
  double copying = 0;
  double chaining = 0;
  for (int pass = 0; pass < 2; ++pass) {
    copying = seconds_of([&] { copy(frames, result, payload); });
    chaining = seconds_of([&] { chain(frames, result, payload, supplies.segments.get()); });
  }
  report(
      "emission", parameters, round,
      {{"chain", chaining * 1e9 / kFrames, "ns", "copy"}, {"copy", copying * 1e9 / kFrames, "ns"}});
  rte_pktmbuf_free(result);
  rte_pktmbuf_free_bulk(frames.data(), kFrames);
}

} // namespace

void measure_emission(const Options& options) {
  for (unsigned round = 0; round < options.rounds; ++round) {
    tell_progress("emission", round, options);
    for (const std::uint16_t payload : {256, 1024, 4096}) {
      if (const auto parameters = Case().with("payload", payload); parameters.is_wanted(options)) {
        measure(payload, parameters, round);
      }
    }
  }
}

} // namespace weir::bench
