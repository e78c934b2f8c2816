// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"
#include "control/memory.hpp"
#include "control/numa.hpp"
#include "control/placement.hpp"
#include "control/port.hpp"
#include "control/tenants.hpp"
#include "control/writer_lock.hpp"
#include "lcore/quiesce.hpp"
#include "program/loaded_operators.hpp"
#include "ring/ring_set.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

struct rte_mempool;

namespace weir::control {

/// The configuration needs more memory than there is. what() has both amounts.
class MemoryError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Until the stages are empty and the ports have taken what they can, once nothing more comes.
inline constexpr std::chrono::milliseconds kDrainTime{20};

using Ports = std::vector<std::shared_ptr<Port>>; // by place; nullptr where there is none

/// What a switch is made of, and what is in force in it. The switch's parts have it in common:
/// their locks, taken as arguments, say who may read and change what. EAL is up before it is made,
/// with the lcores of eal_lcores(placement).
struct Chassis {
  /// Checks memory, then probes ports. `remembered`: rings of earlier runs, whose neighbours stay
  /// known. Throws MemoryError, PortError and config::ConfigError.
  Chassis(const config::Config& config, const std::vector<ring::RingSpec>& remembered);
  ~Chassis();
  Chassis(const Chassis&) = delete;
  Chassis& operator=(const Chassis&) = delete;

  /// The worker of this ring.
  stage::Worker& worker_of(std::uint16_t ring, const lcore::Quiesce& quiesced) const;
  /// The same, while it works: for what only control changes.
  const stage::Worker& worker_of(std::uint16_t ring, const WriterLock& lock) const;
  /// The worker on this lcore, which has one.
  stage::Worker& worker_at(std::size_t lcore, const lcore::Quiesce& quiesced) const;
  /// The worker that has the regions.
  stage::Worker& worker_of_regions(const lcore::Quiesce& quiesced) const;
  /// The same, while it works: for what only control changes.
  const stage::Worker& worker_of_regions(const WriterLock& lock) const;

  /// Each worker's part of the tenants' rates, with these rings so placed.
  std::vector<stage::TenantShares> shares(const ring::RingSet& present, const Placement& placed,
                                          const WriterLock& lock) const {
    return tenants.shares(present, placed, region_holders.read(lock));
  }

  /// By lcore: from now on the workers keep to these.
  void give(const std::vector<stage::TenantShares>& shares, const lcore::Quiesce& quiesced) const;

  /// Puts the set in force, also for the bridge. Returns the former one, for the caller to free
  /// after the stop.
  std::shared_ptr<const ring::RingSet> swap_rings(std::shared_ptr<const ring::RingSet> next,
                                                  const WriterLock& lock,
                                                  const lcore::Quiesce& quiesced);

  /// The operators that lcores see from now on.
  void put_operators(program::LoadedOperators all, const WriterLock& lock);
  /// Those that came with the ring, which has gone.
  void forget_operators_of(std::uint32_t ring, const WriterLock& lock);

  /// All workers make room for the rings of the set in force.
  void follow_rings(const lcore::Quiesce& quiesced) const;
  /// Tells all lcores who works for this ring, by the placement in force.
  void route(std::uint16_t ring, const lcore::Quiesce& quiesced) const;

  /// By place.
  std::vector<PortNode> port_nodes() const;

  const config::Config at_start;
  const wire::HashKey hash_key = wire::HashKey::random();
  mutable WriterMutex one_writer;
  GuardedCurrent<ring::RingSet> rings;
  GuardedCurrent<program::LoadedOperators> operators{program::LoadedOperators()};
  conn::ForeignSessions foreign_sessions;
  conn::QueuePairClaims claims;
  GuardedCurrent<Placement> placement;
  const MemoryPlan plan;
  const Tenants tenants;
  Guarded<std::set<std::string>> region_holders{{}};  // tenants that have regions
  std::optional<conn::ConnectionOwners> owners;       // of several workers
  std::optional<conn::PortBindings> ports_of_members; // likewise
  std::vector<EalMemory> memories;                    // by lcore: for what it works with
  rte_mempool* pool = nullptr;
  GuardedCurrent<Ports> ports{Ports{}};
  l2::MacTable stations;
  l2::Bridge bridge;
  GuardedCurrent<config::Config> config; // in force, but for the rings
  std::optional<lcore::Lcore::Shared> shared;
  mutable lcore::LcoreSet lcores;

 private:
  void check_memory() const;
  void open_ports();
  void make_pool();
  void make_lcores();
};

/// The ring with this id. Throws NoSuchRing.
std::uint16_t index_of(const ring::RingSet& rings, std::uint32_t id);

} // namespace weir::control
