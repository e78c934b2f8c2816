// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"
#include "ring/ring_set.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::control {

/// Of a device or lcore that is near no NUMA node in particular. EAL's SOCKET_ID_ANY.
inline constexpr int kNoNode = -1;

/// Which NUMA node is near. Where an element is missing: none in particular.
struct NumaNodes {
  std::vector<int> lcores; // by index in Placement::lcores
  std::vector<int> ports;  // by place
};

/// The roles of each data lcore. Indices refer to Placement::lcores.
struct Placement {
  struct Queue {
    std::uint16_t port = 0;
    std::uint16_t queue = 0;
  };

  struct DataLcore {
    unsigned id = 0; // CPU number
    int node = kNoNode;
    config::Idle idle = config::Idle::spin;
    std::vector<Queue> receives;
    std::vector<std::uint16_t> transmits; // ports
    std::vector<std::uint16_t> rings;     // indices in the set
    bool works = false;
    std::uint32_t queue_room = 0; // frames that may wait for their turn at the worker
    // Set for a worker without rings: it makes reductions for this lcore's worker.
    std::optional<std::size_t> helps;
  };

  unsigned control_cpu = 0;
  std::vector<DataLcore> lcores;
  std::vector<std::size_t> receivers;    // lcores with the role rx
  std::vector<std::size_t> transmitters; // lcores with the role tx
  std::vector<std::size_t> transmitter_of_port;
  std::vector<std::size_t> worker_of_ring; // by index in the set

  /// Two ring neighbours, those of withdrawn rings included.
  struct Pair {
    std::size_t worker = 0; // the first one, which also has what belongs to no known connection
    bool is_shared = false; // others have, or had, rings of these neighbours too
  };

  std::vector<Pair> pairs; // by number in the set, from 1 on

  const Pair& pair(std::uint16_t number) const { return pairs[number - 1u]; }

  /// Lcores with the role worker.
  std::size_t workers() const;

  /// The lcore works for this ring of the set.
  void assign(std::uint16_t ring, const ring::RingSet& rings, std::size_t lcore);
  /// Deals a port's queues out to the receivers with the fewest, and the port to the transmitter
  /// with the fewest. Where lcores of the port's NUMA node have the role, only they get any.
  void open_port(std::uint16_t port, std::uint16_t rx_queues, int node);
  void close_port(std::uint16_t port);
};

/// Deals receive queues, ports and rings out to the lcores with the role, in turn. So parallel
/// rings, which the configuration has one after the other, get different workers. But a ring with a
/// switch above has its neighbours' first worker (docs/architecture.md, "Parallel rings").
/// Workers for whom no ring is left are dealt out to those that have some, as helpers.
Placement place(const config::Config& config, const ring::RingSet& rings,
                const NumaNodes& nodes = {});

/// Which lcore is to work for one ring more: the one that works for the fewest rings of its
/// neighbours, then the one whose rings hold the fewest frames, then its neighbours' first one.
std::size_t worker_for(const Placement& placement, const ring::RingSet& present,
                       const ring::Ring& ring);

/// EAL's --lcores: lcore 0 is control, lcore i + 1 is placement.lcores[i]; each is bound to its
/// CPU.
std::string eal_lcores(const Placement& placement);

/// The lcore whose worker has the regions: the first one that has a worker.
std::size_t owner_of_regions(const Placement& placement);

} // namespace weir::control
