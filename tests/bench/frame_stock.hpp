// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ring_ports.hpp"
#include "workload.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace weir::bench {

/// A workload's frames in mbufs in random places of memory, as in a switch that has run for some
/// time. The stock keeps the mbufs. Passes change them; refill() restores them.
class FrameStock {
 public:
  FrameStock(const std::vector<Arrival>& arrivals, rte_mempool* pool);
  ~FrameStock();
  FrameStock(const FrameStock&) = delete;
  FrameStock& operator=(const FrameStock&) = delete;

  std::size_t size() const { return frames_.size(); }

  std::uint64_t bytes() const { return bytes_; }

  void refill();

  /// Writes the sessions that a switch has drawn for the rings into the INA headers. `session_of`
  /// takes a ring's number in the workload.
  void enter_sessions(const std::function<std::uint32_t(std::uint16_t)>& session_of);

  /// Puts every frame into its port's receive ring.
  void arrive_at(RingPorts& ports) const;

  rte_mbuf* frame(std::size_t index) const { return frames_[index]; }

  std::uint16_t port_of(std::size_t index) const { return arrivals_[index].port; }

  std::uint16_t ring_of(std::size_t index) const { return arrivals_[index].ring; }

 private:
  const std::vector<Arrival>& arrivals_;
  std::vector<rte_mbuf*> frames_;
  std::uint64_t bytes_ = 0;
};

/// Writes the session that `session_of` gives for the ring into the frame's INA header, if it has
/// one.
void enter_session(std::span<std::uint8_t> bytes,
                   const std::function<std::uint32_t(std::uint16_t)>& session_of);

/// A pool with room for this many frames and for what the stages allocate. Throws
/// std::runtime_error. `ops`: what DPDK's mempools have for who takes and gives back; nullptr: the
/// usual ones.
Pool make_pool(const char* name, std::size_t frames, std::size_t longest,
               const char* ops = nullptr);

/// The longest of the frames, in bytes.
std::size_t longest_of(const std::vector<Arrival>& arrivals);

} // namespace weir::bench
