// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"
#include "control/placement.hpp"

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <new>
#include <string>

namespace weir::control {

inline constexpr double kMiB = 1024.0 * 1024.0; // bytes

/// The memory that the switch takes from EAL, all of it at start.
struct MemoryPlan {
  std::uint32_t mbufs = 0;
  std::uint16_t data_room = 0; // bytes of an mbuf for a frame and its headroom
  std::size_t mbuf_bytes = 0;  // of an mbuf, with the Frame in it
  std::size_t pool_bytes = 0;  // of all mbufs
  std::size_t ring_bytes = 0;  // slots, cached results
  // Of the mbufs: for frames that rings hold, those that are made while the switch runs included.
  std::uint64_t ring_frames = 0;
  std::uint64_t region_frames = 0; // likewise, for frames that regions hold

  std::size_t total() const { return pool_bytes + ring_bytes; }

  std::string explanation; // the calculation in words
};

/// Frames that the port's backlog for ring traffic holds: the results of a window of every ring,
/// for each of its children there, and the partial sums for a parent there; between 4096 and 65536.
/// Where that is not enough, results that were dropped are sent again from the cache. The frames
/// are those that the slots held.
std::uint32_t ring_backlog_of(const config::Config& config, std::uint16_t port);

/// Room in every buffer besides headroom and frame, for drivers: af_packet fills whole slots
/// (framesz), and the kernel leaves 256 bytes before a frame of af_xdp (XDP_PACKET_HEADROOM).
inline constexpr std::uint32_t kDriverRoom = 256;
inline constexpr std::uint32_t kDataRoomAlignment = 64;

/// Frames that may wait in a port's queues.
std::uint64_t frames_queued_at(const config::PortConfig& port);

/// The placement with the room for frames that wait for their turn before each worker: twice as
/// many as could wait for it in receive queues or in a hand-off ring. None where no ring has to
/// wait for another, or for its tenant's rate.
Placement with_queues(const config::Config& config, Placement placement);

/// Frames that a ring can hold: in its slots, and children's hellos that wait.
std::uint64_t frames_held_by(const ring::Ring& ring);

MemoryPlan plan_memory(const config::Config& config, const ring::RingSet& rings,
                       const Placement& placement);

/// MiB that EAL has to have for a switch with this configuration, rounded up. Needs no EAL.
std::uint64_t needed_mib(const config::Config& config);

/// Bytes that EAL can still give: free heap, and hugepages that it has not taken yet.
std::size_t available_memory();

/// EAL has no piece that is as large as what is asked for, although it may have as much in all.
class NoPiece : public std::bad_alloc {
 public:
  const char* what() const noexcept override {
    return "EAL has no piece of memory left that is large enough; right is more: hugepages, or "
           "-m with --no-huge (eal.options)";
  }
};

/// rte_malloc as a memory resource: slots and results are in hugepages, on the NUMA node of the
/// lcore that works with them. If EAL has no memory there, they are on another.
class EalMemory : public std::pmr::memory_resource {
 public:
  /// kNoNode: any node will do.
  explicit EalMemory(int node) : node_(node) {}

  int node() const { return node_; }

  /// Something that it has given was not on its node.
  bool has_given_from_elsewhere() const { return has_given_from_elsewhere_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override;

  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  int node_;
  bool has_given_from_elsewhere_ = false;
};

} // namespace weir::control
