// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/memory.hpp"
#include "control/placement.hpp"
#include "frame/frame.hpp"
#include "frame_stock.hpp"
#include "op/kernel.hpp"
#include "ring_ports.hpp"
#include "workload.hpp"

#include <rte_mbuf.h>

#include <array>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

namespace weir::bench {

/// Not the switch, but what none can leave out that verifies, adds and answers repeats: it checks
/// every frame's ICRC, folds a slot's frames when the last one is there, writes sum and ICRC into
/// each of them, keeps the sum, and sends each frame to its receiver. It is told beforehand which
/// slot each frame belongs to. So it parses no header, looks nothing up, remembers no connection
/// and counts nothing. One is for one pass through the stock.
class BareSwitch {
 public:
  explicit BareSwitch(const Workload& workload);

  /// Parses the stock's frames, which is not to be measured.
  static void describe(const FrameStock& stock);

  /// Until `frames` have left, the workload's data. Throws std::logic_error when fewer leave.
  void run_until_sent(RingPorts& ports, std::uint64_t frames);

  /// Takes a burst from each port, and sends the results. Returns how many frames came.
  unsigned round(RingPorts& ports);

  /// Throws std::logic_error when the frame's ICRC is wrong.
  static void check(frame::Frame& frame);

  /// Where a frame goes.
  struct Place {
    std::uint32_t slot = 0;
    std::uint32_t rank = 0;
  };

  /// Of the next frame that comes by the port.
  const Place& next_place(std::uint16_t port) { return places_[port][next_[port]++]; }

  /// Takes a frame that has been checked.
  void add(frame::Frame& frame, const Place& place);

  /// Results that are to leave by the port.
  std::vector<rte_mbuf*>& leaving_by(std::uint16_t port) { return leaving_[port]; }

  static constexpr std::uint16_t kBurst = 32;

 private:
  void complete(std::uint32_t slot);

  std::uint16_t world_;
  std::uint16_t mtu_;
  op::ReduceKernel kernel_;
  std::array<std::vector<Place>, Workload::kMaxPorts> places_;      // of a port's frames, in order
  std::array<std::size_t, Workload::kMaxPorts> next_{};             // of them
  control::EalMemory memory_{control::kNoNode};                     // as the switch's
  std::pmr::vector<std::uint16_t> arrived_{&memory_};               // by slot
  std::pmr::vector<frame::Frame*> frames_{&memory_};                // slot x world + rank
  std::pmr::vector<std::uint8_t> results_{&memory_};                // slot x mtu
  std::array<std::vector<rte_mbuf*>, Workload::kMaxPorts> leaving_; // by port
};

} // namespace weir::bench
