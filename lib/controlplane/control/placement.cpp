// SPDX-License-Identifier: BSD-3-Clause
#include "control/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

namespace weir::control {
namespace {

bool plays(const config::LcoreConfig& lcore, config::Role role) {
  return std::find(lcore.roles.begin(), lcore.roles.end(), role) != lcore.roles.end();
}

bool plays_data_role(const config::LcoreConfig& lcore) {
  return plays(lcore, config::Role::rx) || plays(lcore, config::Role::worker) ||
         plays(lcore, config::Role::tx);
}

/// Returns the lcores with one role in turn.
class Dealer {
 public:
  void add(std::size_t lcore) { lcores_.push_back(lcore); }

  std::size_t next() { return lcores_[turn_++ % lcores_.size()]; }

 private:
  std::vector<std::size_t> lcores_;
  std::size_t turn_ = 0;
};

int node_at(const std::vector<int>& nodes, std::size_t index) {
  return index < nodes.size() ? nodes[index] : kNoNode;
}

/// Deals each ring group once. The ring groups of withdrawn rings too: their neighbours' packets
/// need a worker.
void deal_rings(Placement& placement, const ring::RingSet& rings, Dealer& workers) {
  std::map<std::uint16_t, std::size_t> dealt;
  const auto worker_of = [&](std::uint16_t ring_group) {
    const auto known = dealt.find(ring_group);
    return known != dealt.end() ? known->second : dealt[ring_group] = workers.next();
  };
  placement.worker_of_ring.resize(rings.rings().size());
  for (const std::uint16_t ring : rings.present()) {
    const std::size_t worker = worker_of(rings.ring_group_of(ring));
    placement.worker_of_ring[ring] = worker;
    placement.lcores[worker].rings.push_back(ring);
  }
  for (std::uint16_t pair = 1; pair <= rings.pairs(); ++pair) {
    worker_of(rings.ring_group_of_pair(pair));
  }
  placement.worker_of_ring_group.resize(dealt.empty() ? 0 : dealt.rbegin()->first + 1u);
  for (const auto& [ring_group, worker] : dealt) {
    placement.worker_of_ring_group[ring_group] = worker;
  }
}

void deal_helpers(Placement& placement) {
  const auto has_rings = [](const Placement::DataLcore& lcore) { return !lcore.rings.empty(); };
  if (std::none_of(placement.lcores.begin(), placement.lcores.end(), has_rings)) {
    return;
  }
  Dealer owners;
  for (std::size_t i = 0; i < placement.lcores.size(); ++i) {
    if (has_rings(placement.lcores[i])) {
      owners.add(i);
    }
  }
  for (Placement::DataLcore& lcore : placement.lcores) {
    if (lcore.works && !has_rings(lcore)) {
      lcore.helps = owners.next();
    }
  }
}

/// By the frames that its rings can hold.
std::size_t least_busy(const Placement& placement, const ring::RingSet& present) {
  std::map<std::size_t, std::uint64_t> frames; // by lcore
  for (std::size_t lcore = 0; lcore < placement.lcores.size(); ++lcore) {
    if (placement.lcores[lcore].works) {
      frames[lcore] = 0;
    }
  }
  for (const std::uint16_t ring : present.present()) {
    const ring::RingSpec& spec = present.rings()[ring].spec();
    frames[placement.worker_of_ring[ring]] +=
        std::uint64_t{spec.depth()} * spec.packets_per_message() * present.rings()[ring].children();
  }
  return std::ranges::min_element(frames, {}, [](const auto& entry) { return entry.second; })
      ->first;
}

} // namespace

Placement place(const config::Config& config, const ring::RingSet& rings, const NumaNodes& nodes) {
  Placement placement;
  Dealer workers;
  for (const config::LcoreConfig& lcore : config.lcores) {
    if (plays(lcore, config::Role::control)) {
      placement.control_cpu = lcore.id;
    }
    if (!plays_data_role(lcore)) {
      continue;
    }
    const std::size_t index = placement.lcores.size();
    placement.lcores.push_back({.id = lcore.id,
                                .node = node_at(nodes.lcores, index),
                                .idle = lcore.idle,
                                .receives = {},
                                .transmits = {},
                                .rings = {},
                                .works = plays(lcore, config::Role::worker),
                                .helps = {}});
    if (plays(lcore, config::Role::rx)) {
      placement.receivers.push_back(index);
    }
    if (plays(lcore, config::Role::worker)) {
      workers.add(index);
    }
    if (plays(lcore, config::Role::tx)) {
      placement.transmitters.push_back(index);
    }
  }
  for (std::uint16_t port = 0; port < config.ports.size(); ++port) {
    placement.open_port(port, config.ports[port].rx_queues, node_at(nodes.ports, port));
  }
  deal_rings(placement, rings, workers);
  deal_helpers(placement);
  return placement;
}

void Placement::open_port(std::uint16_t port, std::uint16_t rx_queues, int node) {
  const auto with_least = [this, node](const std::vector<std::size_t>& of, auto load) {
    return *std::ranges::min_element(of, {}, [&](std::size_t lcore) {
      const bool is_far = node != kNoNode && lcores[lcore].node != node;
      return std::pair(is_far, load(lcores[lcore]));
    });
  };
  const auto queues = [port](const DataLcore& lcore) {
    const auto of_port = std::ranges::count(lcore.receives, port, &Queue::port);
    return std::pair(of_port, lcore.receives.size());
  };
  for (std::uint16_t queue = 0; queue < rx_queues; ++queue) {
    lcores[with_least(receivers, queues)].receives.push_back({port, queue});
  }
  transmitter_of_port.resize(std::max<std::size_t>(transmitter_of_port.size(), port + 1u));
  transmitter_of_port[port] =
      with_least(transmitters, [](const DataLcore& lcore) { return lcore.transmits.size(); });
  assert(std::ranges::count(lcores[transmitter_of_port[port]].transmits, port) == 0);
  lcores[transmitter_of_port[port]].transmits.push_back(port);
}

void Placement::close_port(std::uint16_t port) {
  for (DataLcore& lcore : lcores) {
    std::erase_if(lcore.receives, [port](const Queue& queue) { return queue.port == port; });
    std::erase(lcore.transmits, port);
  }
}

void Placement::assign(std::uint16_t ring, std::uint16_t ring_group, std::size_t lcore) {
  worker_of_ring.resize(std::max<std::size_t>(worker_of_ring.size(), ring + 1u));
  worker_of_ring_group.resize(std::max<std::size_t>(worker_of_ring_group.size(), ring_group + 1u));
  assert(lcores[lcore].works);
  worker_of_ring[ring] = lcore;
  worker_of_ring_group[ring_group] = lcore;
}

std::size_t worker_for(const Placement& placement, const ring::RingSet& present,
                       const ring::Ring& ring) {
  std::set<std::size_t> known;
  for (std::uint16_t sender = 0; sender < ring.senders(); ++sender) {
    const std::uint16_t pair = present.pair_of(ring.source_of(sender), ring.destination_of(sender));
    if (pair != 0) {
      known.insert(placement.worker_of_ring_group[present.ring_group_of_pair(pair)]);
    }
  }
  if (known.size() == 1) {
    return *known.begin();
  }
  if (known.empty()) {
    return least_busy(placement, present);
  }
  std::vector<unsigned> lcores;
  for (const std::size_t worker : known) {
    lcores.push_back(placement.lcores[worker].id);
  }
  throw std::invalid_argument(fmt::format(
      "ring {}: its neighbours are neighbours in other rings, perhaps withdrawn ones, for which "
      "lcores {} work; allowed: neighbours of one lcore's rings, or new ones",
      ring.spec().id, fmt::join(lcores, " and ")));
}

std::string eal_lcores(const Placement& placement) {
  std::string map = fmt::format("0@{}", placement.control_cpu);
  for (std::size_t i = 0; i < placement.lcores.size(); ++i) {
    map += fmt::format(",{}@{}", i + 1, placement.lcores[i].id);
  }
  return map;
}

} // namespace weir::control
