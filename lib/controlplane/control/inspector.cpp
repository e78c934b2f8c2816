// SPDX-License-Identifier: BSD-3-Clause
#include "control/inspector.hpp"

#include "control/chassis.hpp"
#include "control/loops.hpp"
#include "control/port_counts.hpp"
#include "control/ring_admin.hpp"
#include "lcore/clock.hpp"

#include <fmt/format.h>
#include <rte_mempool.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>
#include <utility>

namespace weir::control {

using lcore::Lcore;
using lcore::Quiesce;

namespace {

/// By tenant's number.
std::map<std::uint16_t, stage::LineSnapshot> lines_of_regions(const stage::Worker& worker) {
  const stage::FairQueue& lines = worker.queue().lines();
  std::map<std::uint16_t, stage::LineSnapshot> sums;
  for (std::size_t region = 0; region < lines.regions(); ++region) {
    const std::uint16_t line = lines.line_of_region(region);
    sums[lines.tenant_of(line)] += stage::snapshot_line(lines, line);
  }
  return sums;
}

constexpr std::size_t kPlacesAtOnce = 256;              // connections in one stop
constexpr std::size_t kRingsAtOnce = 16;                // whose lives are copied in one stop
constexpr std::size_t kRingsInLook = 8;                 // copied with their lives in one stop
constexpr std::chrono::microseconds kBetweenParts{100}; // time for lcores to work off what has come

std::size_t places_of(Lcore& lcore) {
  const stage::Worker* worker = lcore.worker();
  return worker != nullptr ? worker->incarnations().connections().places() : 0;
}

/// After the stops: they take time to copy. All rings of the set, in its order.
void add_specs(const ring::RingSet& set, std::vector<TendedRing>& rings) {
  const std::vector<std::uint16_t> indices = set.present();
  for (std::size_t i = 0; i < indices.size(); ++i) {
    rings[i].spec = set.rings()[indices[i]].spec();
  }
}

/// What an lcore has to do.
struct Duties {
  bool receives = false;
  bool works = false;
  bool transmits = false;
};

Duties duties_of(Lcore& lcore) {
  return {.receives = lcore.receives(),
          .works = lcore.worker() != nullptr,
          .transmits = lcore.transmits()};
}

std::string names_of(const Duties& duties) {
  std::vector<std::string_view> roles;
  if (duties.receives) {
    roles.emplace_back("rx");
  }
  if (duties.works) {
    roles.emplace_back("worker");
  }
  if (duties.transmits) {
    roles.emplace_back("tx");
  }
  return fmt::format("{}", fmt::join(roles, ","));
}

} // namespace

std::shared_ptr<const config::Config> Inspector::config() const {
  return chassis_.config.share();
}

std::vector<std::shared_ptr<const Port>> Inspector::ports() const {
  const auto ports = chassis_.ports.share();
  return {ports->begin(), ports->end()};
}

std::shared_ptr<const ring::RingSet> Inspector::ring_set() const {
  return chassis_.rings.share();
}

frame::PortCounters Inspector::port_counters(std::uint16_t port) const {
  return counts_.of(port);
}

std::vector<Station> Inspector::stations() const {
  std::vector<Station> stations;
  chassis_.stations.for_each(
      lcore::Clock().now().ms(), [&](const wire::MacAddress& mac, std::uint16_t port,
                                     std::uint64_t age_ms, std::uint64_t pins) {
        stations.push_back({mac, port, age_ms, pins, chassis_.stations.is_tied(mac)});
      });
  return stations;
}

PortLoops Inspector::loops(std::uint16_t port) const {
  return loops_.of(port);
}

const Tenants& Inspector::tenants() const {
  return chassis_.tenants;
}

const MemoryPlan& Inspector::memory_plan() const {
  return chassis_.plan;
}

std::uint32_t Inspector::free_mbufs() const {
  return rte_mempool_avail_count(chassis_.pool);
}

std::uint32_t Inspector::all_mbufs() const {
  return chassis_.plan.mbufs;
}

lcore::StopTimes Inspector::stop_times() const {
  return chassis_.lcores.stop_times();
}

std::vector<std::string> Inspector::numa_warnings() const {
  const std::vector<PortNode> ports = chassis_.port_nodes();
  const int node = chassis_.pool->socket_id;
  std::vector<std::string> warnings = crossings(ports, *chassis_.placement.share(), node);
  if (const int wished = node_of_frames(ports); node != wished) {
    warnings.push_back(misplaced("mbufs", wished));
  }
  for (std::size_t i = 0; i < chassis_.memories.size(); ++i) {
    if (chassis_.memories[i].has_given_from_elsewhere()) {
      warnings.push_back(
          misplaced(fmt::format("slots and results of lcore {}", chassis_.lcores[i].id()),
                    chassis_.memories[i].node()));
    }
  }
  return warnings;
}

stage::Accounting Inspector::accounting() const {
  const Quiesce quiesced(chassis_.lcores);
  stage::Accounting accounting;
  for (const auto& lcore : chassis_.lcores) {
    accounting.frames += lcore->counters();
    accounting.queued += lcore->queued();
    accounting.held += lcore->worker() != nullptr ? lcore->worker()->held() : 0;
  }
  accounting.held += rings_.held_by_withdrawn(quiesced);
  return accounting;
}

std::vector<LcoreSnapshot> Inspector::lcores() const {
  std::vector<LcoreSnapshot> snapshots(chassis_.lcores.size());
  std::vector<Duties> duties(chassis_.lcores.size());
  {
    const Quiesce quiesced(chassis_.lcores);
    for (std::size_t i = 0; i < chassis_.lcores.size(); ++i) {
      Lcore& lcore = chassis_.lcores[i];
      if (const stage::Worker* worker = lcore.worker(); worker != nullptr) {
        snapshots[i].held = worker->held();
        snapshots[i].rings = worker->rings().size();
      }
      duties[i] = duties_of(lcore);
      snapshots[i].frames = lcore.counters();
      snapshots[i].rounds = lcore.rounds();
    }
  }
  const auto placement = chassis_.placement.share();
  for (std::size_t i = 0; i < chassis_.lcores.size(); ++i) {
    snapshots[i].id = chassis_.lcores[i].id();
    snapshots[i].roles = names_of(duties[i]);
    snapshots[i].numa_node = placement->lcores[i].node;
  }
  return snapshots;
}

stage::RingSnapshot Inspector::snapshot_of(std::uint16_t ring, const Quiesce& quiesced) const {
  const stage::Worker& worker = chassis_.worker_of(ring, quiesced);
  stage::RingSnapshot snapshot = stage::snapshot_ring(worker, ring, lcore::Clock().now());
  const Placement& placement = chassis_.placement.read(quiesced);
  snapshot.lcore = placement.lcores[placement.worker_of_ring[ring]].id;
  // Behind a port that does not bridge nobody is pinned.
  std::erase_if(snapshot.unpinned, [&](std::uint16_t child) {
    const auto port = worker.incarnations().ports().port_of({ring, child});
    return port && chassis_.bridge.is_shut(*port);
  });
  return snapshot;
}

RingsSeen Inspector::rings() const {
  RingsSeen seen;
  const Quiesce quiesced(chassis_.lcores);
  seen.set = chassis_.rings.share();
  for (const std::uint16_t ring : seen.set->present()) {
    seen.rings.push_back(snapshot_of(ring, quiesced));
  }
  if (chassis_.at_start.regions) {
    seen.of_regions = lines_of_regions(chassis_.worker_of_regions(quiesced));
  }
  return seen;
}

/// Visits the set's rings, some in each stop; one stop if there is none. False if there is another
/// set by then.
template <typename Visit>
bool Inspector::visit_in_parts(const std::shared_ptr<const ring::RingSet>& set, std::size_t at_once,
                               Visit&& visit) const {
  const std::vector<std::uint16_t> rings = set->present();
  std::size_t next = 0;
  do {
    if (next != 0) {
      std::this_thread::sleep_for(kBetweenParts);
    }
    const Quiesce quiesced(chassis_.lcores);
    if (chassis_.rings.share() != set) {
      return false;
    }
    for (const std::size_t end = std::min(next + at_once, rings.size()); next < end; ++next) {
      visit(rings[next], quiesced);
    }
  } while (next < rings.size());
  return true;
}

Look Inspector::look() const {
  Look seen;
  const auto see = [&](std::uint16_t ring, const Quiesce& quiesced) {
    seen.rings.push_back(snapshot_of(ring, quiesced));
    seen.tended.push_back(rings_.tended(ring, lcore::Clock().now(), quiesced));
  };
  do {
    seen = {.now_ns = lcore::Clock().now().ns, .set = ring_set(), .rings = {}, .tended = {}};
  } while (!visit_in_parts(seen.set, kRingsInLook, see));
  add_specs(*seen.set, seen.tended);
  return seen;
}

TendedRings Inspector::tended_rings() const {
  TendedRings seen;
  std::shared_ptr<const ring::RingSet> set;
  const auto see = [&](std::uint16_t ring, const Quiesce& quiesced) {
    seen.rings.push_back(rings_.tended(ring, lcore::Clock().now(), quiesced));
  };
  do {
    set = ring_set();
    seen = {.now_ns = lcore::Clock().now().ns, .rings = {}};
  } while (!visit_in_parts(set, kRingsAtOnce, see));
  add_specs(*set, seen.rings);
  return seen;
}

RingsSeen Inspector::ring(std::uint32_t id) const {
  const Quiesce quiesced(chassis_.lcores);
  const std::uint16_t ring = index_of(chassis_.rings.read(quiesced), id);
  return {chassis_.rings.share(), {snapshot_of(ring, quiesced)}};
}

/// Sorts after the stop, while the ring cannot be withdrawn.
StuckRing Inspector::stuck_slots(std::uint32_t id, std::size_t limit) const {
  const WriterLock lock(chassis_.one_writer);
  const ring::RingSet& rings = chassis_.rings.read(lock);
  const std::uint16_t ring = index_of(rings, id);
  const stage::Worker& worker = chassis_.worker_of(ring, lock);
  StuckRing answer{.spec = rings.rings()[ring].spec(), .stuck = {}};
  stage::StuckSnapshot& stuck = answer.stuck;
  std::vector<slot::WaitingSlot> waiting;
  {
    const Quiesce quiesced(chassis_.lcores);
    stuck.now = lcore::Clock().now();
    waiting = worker.slots_of(ring).waiting();
    stuck.waited_for = stage::snapshot_senders(worker, ring);
  }
  stuck.slots = worker.slots_of(ring).longest_of(std::move(waiting), limit, stuck.now.ns);
  stage::keep_waited_for(stuck.waited_for, stuck.slots);
  return answer;
}

std::vector<stage::SenderSnapshot> Inspector::senders(std::uint32_t id) const {
  const Quiesce quiesced(chassis_.lcores);
  const std::uint16_t ring = index_of(chassis_.rings.read(quiesced), id);
  return stage::snapshot_senders(chassis_.worker_of(ring, quiesced), ring);
}

std::vector<stage::ConnectionSnapshot> Inspector::connections() const {
  std::vector<stage::ConnectionSnapshot> all;
  // Allocated and touched before the stop.
  std::vector<stage::ConnectionSnapshot> part(kPlacesAtOnce);
  for (const auto& lcore : chassis_.lcores) {
    const std::size_t places = places_of(*lcore);
    for (std::size_t first = 0; first < places; first += kPlacesAtOnce) {
      part.clear();
      {
        const Quiesce quiesced(chassis_.lcores);
        snapshot_connections(*lcore->worker(), chassis_.rings.read(quiesced),
                             {first, kPlacesAtOnce}, lcore::Clock().now(), part);
      }
      all.insert(all.end(), part.begin(), part.end());
      std::this_thread::sleep_for(kBetweenParts);
    }
  }
  return all;
}

std::uint64_t Inspector::refusals() const {
  std::uint64_t count = 0;
  for (const auto& lcore : chassis_.lcores) {
    count += lcore->refused_hellos().count();
    count += lcore->worker() != nullptr ? lcore->worker()->refused_hellos().count() : 0;
  }
  return count;
}

std::vector<conn::RefusedHello> Inspector::refused_hellos() const {
  std::vector<conn::RefusedHello> all;
  const auto add = [&all](const conn::RefusedHellos& some) {
    const auto hellos = some.all();
    all.insert(all.end(), hellos.begin(), hellos.end());
  };
  if (refusals() != 0) {
    const Quiesce quiesced(chassis_.lcores);
    for (const auto& lcore : chassis_.lcores) {
      add(lcore->refused_hellos());
      if (lcore->worker() != nullptr) {
        add(lcore->worker()->refused_hellos());
      }
    }
  }
  std::ranges::sort(all, {}, &conn::RefusedHello::at_ns);
  return all;
}

} // namespace weir::control
