// SPDX-License-Identifier: BSD-3-Clause
#include "frame_stock.hpp"
#include "op/kernel.hpp"
#include "pipeline.hpp"
#include "slot/fold.hpp"

#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace weir::bench {
namespace {

constexpr std::uint16_t kHeaderBytes = 58; // Ethernet, IPv4, UDP, BTH, and padding for alignment
constexpr std::uint16_t kTailBytes = 4;    // ICRC
constexpr std::uint16_t kRanks = 8;
constexpr std::size_t kFrames = 4096;

/// The mbufs that each method of sending a result needs.
struct Supplies {
  explicit Supplies(std::uint16_t payload)
      : frames(make_pool("bench_frames", kFrames, 128u + payload)),
        segments(rte_pktmbuf_pool_create("bench_segments", 16384, 256, 0, RTE_PKTMBUF_HEADROOM + 64,
                                         SOCKET_ID_ANY)) {}

  Pool frames;
  Pool segments;
};

/// The frames of one slot, one for each rank.
using Slot = std::span<rte_mbuf* const, kRanks>;

std::array<std::byte*, kRanks> payloads_of(Slot slot) {
  std::array<std::byte*, kRanks> payloads;
  std::transform(slot.begin(), slot.end(), payloads.begin(), [](rte_mbuf* frame) {
    return rte_pktmbuf_mtod_offset(frame, std::byte*, kHeaderBytes);
  });
  return payloads;
}

/// Methods to send the sum of a slot's frames in each of them.
class Emission {
 public:
  explicit Emission(std::uint16_t payload)
      : supplies_(payload), payload_(payload), frames_(kFrames) {
    rte_pktmbuf_alloc_bulk(supplies_.frames.get(), frames_.data(), kFrames);
    for (rte_mbuf* frame : frames_) {
      rte_pktmbuf_append(frame, static_cast<std::uint16_t>(kHeaderBytes + payload + kTailBytes));
      std::memset(rte_pktmbuf_mtod(frame, void*), 0, frame->data_len);
    }
    result_ = rte_pktmbuf_alloc(supplies_.frames.get());
    rte_pktmbuf_append(result_, payload);
  }

  ~Emission() {
    rte_pktmbuf_free(result_);
    rte_pktmbuf_free_bulk(frames_.data(), kFrames);
  }

  Emission(const Emission&) = delete;
  Emission& operator=(const Emission&) = delete;

  /// Nanoseconds per frame of one method.
  double ns_of(void (Emission::*way)(Slot)) {
    return seconds_of([&] {
             for (std::size_t at = 0; at < kFrames; at += kRanks) {
               (this->*way)(Slot(&frames_[at], kRanks));
             }
           }) *
           1e9 / kFrames;
  }

  /// The part that all methods share.
  void sum(Slot slot) {
    const auto payloads = payloads_of(slot);
    kernel_(result(), payloads.data(), kRanks, payload_, {});
  }

  /// Like the switch: the kernel writes the sum into each frame.
  void sum_to_all(Slot slot) {
    const auto payloads = payloads_of(slot);
    slot::Fold{kernel_}(result(), payloads, payload_);
  }

  /// A chain: the frame's headers, the one result by reference, the ICRC in a segment of its own.
  /// The segments are freed at once; a NIC's driver does that later.
  void sum_and_chain(Slot slot) {
    sum(slot);
    std::array<rte_mbuf*, 2 * kRanks> parts;
    rte_pktmbuf_alloc_bulk(supplies_.segments.get(), parts.data(), parts.size());
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      chain(*slot[rank], *parts[2 * rank], *parts[2 * rank + 1]);
    }
    for (rte_mbuf* frame : slot) {
      free_shared_segments(*frame);
      frame->data_len = static_cast<std::uint16_t>(kHeaderBytes + payload_ + kTailBytes);
    }
  }

 private:
  std::byte* result() { return rte_pktmbuf_mtod(result_, std::byte*); }

  void chain(rte_mbuf& frame, rte_mbuf& body, rte_mbuf& tail) {
    rte_pktmbuf_attach(&body, result_);
    const auto* icrc = rte_pktmbuf_mtod_offset(&frame, const void*, kHeaderBytes + payload_);
    std::memcpy(rte_pktmbuf_append(&tail, kTailBytes), icrc, kTailBytes);
    frame.data_len = kHeaderBytes;
    frame.next = &body;
    body.next = &tail;
    frame.nb_segs = 3;
  }

  Supplies supplies_;
  std::uint16_t payload_;
  op::ReduceKernel kernel_ = op::find_kernel(DataType::f32, Operation::sum, op::best_cpu_level());
  std::vector<rte_mbuf*> frames_;
  rte_mbuf* result_ = nullptr;
};

void measure(std::uint16_t payload, const Case& parameters, unsigned round) {
  Emission emission(payload);
  emission.ns_of(&Emission::sum); // warms the caches, and overwrites what verification left there
  const double sum = emission.ns_of(&Emission::sum);
  const double chained = emission.ns_of(&Emission::sum_and_chain);
  const double written = emission.ns_of(&Emission::sum_to_all);
  report("emission", parameters, round,
         {{"sum", sum, "ns"},
          {"sum_to_all", written, "ns", "sum"},
          {"sum_and_chain", chained, "ns", "sum"}});
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
