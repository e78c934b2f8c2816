// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rte_ring.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct rte_mbuf;
struct rte_mempool;

namespace weir::bench {

struct FreePool {
  void operator()(rte_mempool* pool) const;
};

using Pool = std::unique_ptr<rte_mempool, FreePool>;

/// Ethernet ports whose wires are rte_rings (DPDK's net_ring). Frames put into a receive ring, one
/// for each queue, are received from it; frames that the switch transmits are in the port's
/// transmit ring.
class RingPorts {
 public:
  /// Each ring has room for at least `depth` frames. Throws std::runtime_error when EAL has no
  /// memory.
  RingPorts(std::uint16_t ports, std::uint32_t depth, std::uint16_t rx_queues = 1);
  ~RingPorts();
  RingPorts(const RingPorts&) = delete;
  RingPorts& operator=(const RingPorts&) = delete;

  std::uint16_t size() const { return static_cast<std::uint16_t>(ports_.size()); }

  std::uint16_t device(std::uint16_t port) const { return ports_[port].device; }

  void put(std::uint16_t port, rte_mbuf* frame, std::uint16_t queue = 0);

  /// Takes transmitted frames off the wires, and frees what a NIC would free after reading them:
  /// segments that a frame shares with others. Returns the number of frames.
  std::uint64_t take_transmitted();

  /// The same for one port, at most `limit` frames; the frames stay complete.
  unsigned take(std::uint16_t port, rte_mbuf** frames, unsigned limit);

 private:
  struct Free {
    void operator()(rte_ring* ring) const { rte_ring_free(ring); }
  };

  using Ring = std::unique_ptr<rte_ring, Free>;

  struct Port {
    std::vector<Ring> receive; // by queue
    Ring transmit;
    std::uint16_t device = 0;
  };

  static std::uint16_t make_device(const std::string& name, const Port& port, rte_mempool* pool);

  Pool pool_; // ethdev requires one for every receive queue; net_ring takes nothing from it
  std::vector<Port> ports_;
};

/// Frees all segments of a transmitted frame except its own first one.
void free_shared_segments(rte_mbuf& frame);

} // namespace weir::bench
