// SPDX-License-Identifier: BSD-3-Clause
#include "control/chassis.hpp"

#include "control/lcores.hpp"
#include "control/no_such_ring.hpp"
#include "control/ring_admission.hpp"
#include "control/settings.hpp"
#include "lcore/clock.hpp"
#include "lcore/mbuf_frame.hpp"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

namespace weir::control {

using lcore::Lcore;
using lcore::Quiesce;

namespace {

constexpr unsigned kMempoolCache = 256;

/// The configured rings, and as withdrawn ones those that the switch remembers.
ring::RingSet first_rings(const config::Config& config,
                          const std::vector<ring::RingSpec>& remembered,
                          const wire::HashKey& hash_key) {
  ring::RingSet set(config.rings, hash_key);
  std::uint32_t unused_id = 0;
  for (ring::RingSpec ring : remembered) {
    while (set.ring_with_id(unused_id)) {
      ++unused_id;
    }
    ring.id = unused_id;
    set = set.with(ring).without(set.next_index());
  }
  return set;
}

NumaNodes numa_nodes(const config::Config& config) {
  NumaNodes nodes;
  for (unsigned lcore = 1; lcore < rte_lcore_count(); ++lcore) { // 0 is control
    nodes.lcores.push_back(static_cast<int>(rte_lcore_to_socket_id(lcore)));
  }
  for (const config::PortConfig& port : config.ports) {
    nodes.ports.push_back(numa_node_of(port));
  }
  return nodes;
}

std::vector<EalMemory> memories_of(const Placement& placement) {
  std::vector<EalMemory> memories;
  for (const Placement::DataLcore& lcore : placement.lcores) {
    memories.emplace_back(lcore.node);
  }
  return memories;
}

std::uint32_t most_claims(const ring::RingSet& rings, const config::SpareConfig& spare) {
  return conn::QueuePairClaims::most_of(rings) + conn::QueuePairClaims::kPerChild * spare.members;
}

std::uint32_t most_connections(const ring::RingSet& rings, const config::SpareConfig& spare) {
  return most_claims(rings, spare) / conn::QueuePairClaims::kPerChild;
}

/// While no lcore runs, or all stand still.
void set_shares(const lcore::LcoreSet& lcores, const std::vector<stage::TenantShares>& shares) {
  for (std::size_t i = 0; i < shares.size(); ++i) {
    assert(lcores[i].is_quiescent());
    if (stage::Worker* worker = lcores[i].worker(); worker != nullptr) {
      worker->queue().set_shares(shares[i], lcore::Clock().now());
    }
  }
}

} // namespace

Chassis::Chassis(const config::Config& start, const std::vector<ring::RingSpec>& remembered)
    : at_start(start), rings(first_rings(start, remembered, hash_key)),
      foreign_sessions(hash_key, stage::ways_out_by(bridge)),
      claims(most_claims(*rings.share(), start.spare), hash_key),
      placement(with_queues(start, place(start, *rings.share(), numa_nodes(start)))),
      plan(plan_memory(start, *rings.share(), *placement.share())),
      tenants(start.tenants, plan.mbuf_bytes, *rings.share()),
      memories(memories_of(*placement.share())),
      stations(start.l2.entries, milliseconds(start.l2.aging_s), hash_key),
      bridge(stations, static_cast<std::uint16_t>(start.ports.size())), config(start) {
  bridge.shut(unbridged_ports(start), l2::Bridge::Why::configured);
  bridge.lead_to_switches(rings.share()->ports_of_switches());
  tie_stations(start, stations, lcore::Clock().now().ms());
  check_memory();
  open_ports();
  make_pool();
  make_lcores();
}

std::shared_ptr<const ring::RingSet> Chassis::swap_rings(std::shared_ptr<const ring::RingSet> next,
                                                         const WriterLock& lock,
                                                         const lcore::Quiesce& quiesced) {
  bridge.lead_to_switches(next->ports_of_switches());
  return rings.swap(std::move(next), lock, quiesced);
}

/// The former set is freed after the stop.
void Chassis::put_operators(program::LoadedOperators all, const WriterLock& lock) {
  auto next = std::make_shared<const program::LoadedOperators>(std::move(all));
  const Quiesce quiesced(lcores);
  next = operators.swap(std::move(next), lock, quiesced);
}

void Chassis::forget_operators_of(std::uint32_t ring, const WriterLock& lock) {
  program::LoadedOperators left = operators.read(lock);
  if (left.take_from([ring](const auto&, const program::OperatorOwner& owner) {
        return owner.ring == ring;
      })) {
    put_operators(std::move(left), lock);
  }
}

Chassis::~Chassis() {
  lcores.take({});
  ports.set({}); // before the pool: their queues hold its mbufs
  rte_mempool_free(pool);
}

void Chassis::check_memory() const {
  const std::size_t have = available_memory();
  if (plan.total() > have) {
    throw MemoryError(fmt::format(
        "the configuration needs {:.0f} MiB, EAL has {:.0f} MiB: {}. Give EAL more (-m or "
        "--socket-mem under "
        "eal.options, or hugepages), or make window, max_message_bytes or descriptors smaller",
        static_cast<double>(plan.total()) / kMiB, static_cast<double>(have) / kMiB,
        plan.explanation));
  }
}

void Chassis::open_ports() {
  Ports opened;
  for (const config::PortConfig& port : at_start.ports) {
    opened.push_back(std::make_shared<Port>(port));
  }
  ports.set(std::move(opened));
}

/// On the ports' NUMA node if EAL has memory there.
void Chassis::make_pool() {
  const auto pool_on = [this](int node) {
    return rte_pktmbuf_pool_create("weir_frames", plan.mbufs, kMempoolCache,
                                   lcore::kFrameBytesInMbuf, plan.data_room, node);
  };
  pool = pool_on(node_of_frames(port_nodes()));
  pool = pool != nullptr ? pool : pool_on(SOCKET_ID_ANY);
  if (pool == nullptr) {
    throw MemoryError(fmt::format("no memory for the frame pool ({}): {}", rte_strerror(rte_errno),
                                  plan.explanation));
  }
}

std::vector<PortNode> Chassis::port_nodes() const {
  std::vector<PortNode> nodes;
  for (const auto& port : *ports.share()) {
    nodes.push_back(port ? PortNode{port->name(), port->numa_node()} : PortNode{});
  }
  return nodes;
}

void Chassis::make_lcores() {
  stage::Worker::Settings settings;
  settings.classifier =
      classifier_settings(at_start, conn::SessionSource::random(conn::HashKey::random()), hash_key);
  settings.classifier.foreign_sessions = &foreign_sessions;
  settings.classifier.claims = &claims;
  settings.classifier.operators = &operators.for_lcores();
  if (const std::size_t workers = placement.share()->lcores.size();
      placement.share()->workers() > 1) {
    owners.emplace(most_connections(*rings.share(), at_start.spare), workers, hash_key);
    ports_of_members.emplace(rings.for_lcores());
    settings.classifier.owners = &*owners;
    settings.classifier.ports_of_members = &*ports_of_members;
  }
  shared.emplace(Lcore::Shared{rings.for_lcores(), bridge, frame_limits(at_start),
                               conn::magic_rule_settings(settings.classifier), pool,
                               outer_tags(at_start)});
  shared->owners = settings.classifier.owners;
  if (at_start.regions) {
    shared->regions = region::Address{at_start.regions->address, at_start.regions->mac};
  }
  settings.level = op::best_cpu_level();
  std::vector<lcore::TxQueues> queues;
  for (const auto& port : *ports.share()) {
    queues.push_back(port->tx_queues());
    queues.back().ring_backlog =
        ring_backlog_of(at_start, static_cast<std::uint16_t>(queues.size() - 1));
  }
  lcores.take(control::make_lcores(*placement.share(), *shared, settings, queues, memories));
  set_shares(lcores, tenants.shares(*rings.share(), *placement.share(), {}));
}

stage::Worker& Chassis::worker_of(std::uint16_t ring, const Quiesce& quiesced) const {
  assert(ring < rings.read(quiesced).rings().size());
  return worker_at(placement.read(quiesced).worker_of_ring[ring], quiesced);
}

const stage::Worker& Chassis::worker_of(std::uint16_t ring, const WriterLock& lock) const {
  assert(ring < rings.read(lock).rings().size());
  return *lcores[placement.read(lock).worker_of_ring[ring]].worker();
}

stage::Worker& Chassis::worker_at(std::size_t lcore, const Quiesce&) const {
  assert(lcore < lcores.size());
  assert(lcores[lcore].is_quiescent());
  assert(lcores[lcore].worker() != nullptr);
  return *lcores[lcore].worker();
}

stage::Worker& Chassis::worker_of_regions(const Quiesce& quiesced) const {
  return worker_at(owner_of_regions(placement.read(quiesced)), quiesced);
}

const stage::Worker& Chassis::worker_of_regions(const WriterLock& lock) const {
  return *lcores[owner_of_regions(placement.read(lock))].worker();
}

void Chassis::follow_rings(const Quiesce&) const {
  for (const auto& lcore : lcores) {
    if (stage::Worker* worker = lcore->worker(); worker != nullptr) {
      worker->follow_set();
    }
  }
}

void Chassis::route(std::uint16_t ring, const Quiesce& quiesced) const {
  route_ring(lcores, ring, rings.read(quiesced), placement.read(quiesced));
}

void Chassis::give(const std::vector<stage::TenantShares>& shares, const Quiesce&) const {
  set_shares(lcores, shares);
}

std::uint16_t index_of(const ring::RingSet& rings, std::uint32_t id) {
  const auto ring = rings.ring_with_id(id);
  if (!ring) {
    throw NoSuchRing(fmt::format("ring: found {}; allowed: {}", id, ids_of(rings)));
  }
  return *ring;
}

} // namespace weir::control
