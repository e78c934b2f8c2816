// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rte_ring.h>

#include <cstdint>
#include <memory>
#include <vector>

struct rte_mbuf;
struct rte_mempool;

namespace weir::bench {

struct FreePool {
  void operator()(rte_mempool* pool) const;
};

using Pool = std::unique_ptr<rte_mempool, FreePool>;

/// Ethernet ports whose wires are rte_rings (DPDK's net_ring): what is put into a port's receive
/// ring beforehand is received from it, what the switch transmits lies in its transmit ring.
class RingPorts {
 public:
  /// `depth` frames fit into each ring at least. Throws std::runtime_error when EAL has no memory.
  RingPorts(std::uint16_t ports, std::uint32_t depth);
  ~RingPorts();
  RingPorts(const RingPorts&) = delete;
  RingPorts& operator=(const RingPorts&) = delete;

  std::uint16_t size() const { return static_cast<std::uint16_t>(ports_.size()); }

  std::uint16_t device(std::uint16_t port) const { return ports_[port].device; }

  void put(std::uint16_t port, rte_mbuf* frame);

  /// Takes transmitted frames off the wires and frees what a NIC would have freed once it had read
  /// them: segments that a frame shares with others. Returns the number of frames.
  std::uint64_t take_transmitted();

  /// The same for one port, at most `limit` frames, which stay whole.
  unsigned take(std::uint16_t port, rte_mbuf** frames, unsigned limit);

 private:
  struct Free {
    void operator()(rte_ring* ring) const { rte_ring_free(ring); }
  };

  struct Port {
    std::unique_ptr<rte_ring, Free> receive;
    std::unique_ptr<rte_ring, Free> transmit;
    std::uint16_t device = 0;
  };

  Pool pool_; // ethdev wants one of every receive queue; net_ring takes nothing from it
  std::vector<Port> ports_;
};

/// Gives back what of a transmitted frame is not the frame's own first segment.
void free_shared_segments(rte_mbuf& frame);

} // namespace weir::bench
