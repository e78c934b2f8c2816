// SPDX-License-Identifier: BSD-3-Clause
#include "control/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace weir::control {
namespace {

constexpr std::size_t kNobody = SIZE_MAX;

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

/// Of two neighbours of the ring; none: no ring has, or had, any of them.
std::optional<std::size_t> first_worker_of(const Placement& placement, const ring::RingSet& present,
                                           const ring::Ring& ring) {
  for (std::uint16_t sender = 0; sender < ring.senders(); ++sender) {
    const std::uint16_t pair = present.pair_of(ring.source_of(sender), ring.destination_of(sender));
    const bool is_known = pair != 0 && pair <= placement.pairs.size();
    if (is_known && placement.pair(pair).worker != kNobody) {
      return placement.pair(pair).worker;
    }
  }
  return std::nullopt;
}

/// Rings first. The neighbours of withdrawn rings too: their packets need a worker.
void deal_rings(Placement& placement, const ring::RingSet& rings, Dealer& workers) {
  placement.worker_of_ring.resize(rings.rings().size());
  for (const std::uint16_t ring : rings.present()) {
    const ring::Ring& own = rings.rings()[ring];
    const std::optional<std::size_t> first =
        own.is_root() ? std::nullopt : first_worker_of(placement, rings, own);
    const std::size_t worker = first ? *first : workers.next();
    placement.assign(ring, rings, worker);
    placement.lcores[worker].rings.push_back(ring);
  }
  const auto known = static_cast<std::uint16_t>(rings.pairs());
  placement.pairs.resize(known, {.worker = kNobody});
  for (std::uint16_t pair = 1; pair <= known; ++pair) {
    if (placement.pair(pair).worker == kNobody) {
      const std::size_t worker = workers.next();
      placement.pairs[pair - 1u].worker = worker;
      placement.pairs[rings.reverse_of(pair) - 1u].worker = worker;
    }
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

/// By lcore that works: frames that its rings can hold.
std::map<std::size_t, std::uint64_t> frames_of_workers(const Placement& placement,
                                                       const ring::RingSet& present) {
  std::map<std::size_t, std::uint64_t> frames;
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
  return frames;
}

/// The present rings that have neighbours of this one.
std::set<std::uint16_t> rings_beside(const ring::RingSet& present, const ring::Ring& ring) {
  std::set<std::uint16_t> beside;
  for (std::uint16_t sender = 0; sender < ring.senders(); ++sender) {
    const std::uint16_t pair = present.pair_of(ring.source_of(sender), ring.destination_of(sender));
    if (pair == 0) {
      continue;
    }
    for (const std::uint16_t direction : {pair, present.reverse_of(pair)}) {
      for (const ring::RingChild& other : present.senders(direction)) {
        beside.insert(other.ring);
      }
    }
  }
  return beside;
}

} // namespace

Placement place(const config::Config& config, const ring::RingSet& rings, const NumaNodes& nodes) {
  Placement placement;
  Dealer workers;
  for (const config::LcoreConfig& lcore : config.lcores) {
    if (lcore.plays(config::Role::control)) {
      placement.control_cpu = lcore.id;
    }
    if (!lcore.moves_packets()) {
      continue;
    }
    const std::size_t index = placement.lcores.size();
    placement.lcores.push_back({.id = lcore.id,
                                .node = node_at(nodes.lcores, index),
                                .idle = lcore.idle,
                                .receives = {},
                                .transmits = {},
                                .rings = {},
                                .works = lcore.plays(config::Role::worker),
                                .helps = {}});
    if (lcore.plays(config::Role::rx)) {
      placement.receivers.push_back(index);
    }
    if (lcore.plays(config::Role::worker)) {
      workers.add(index);
    }
    if (lcore.plays(config::Role::tx)) {
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

std::size_t Placement::workers() const {
  return static_cast<std::size_t>(std::ranges::count(lcores, true, &DataLcore::works));
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

void Placement::assign(std::uint16_t ring, const ring::RingSet& rings, std::size_t lcore) {
  assert(lcores[lcore].works);
  worker_of_ring.resize(std::max<std::size_t>(worker_of_ring.size(), ring + 1u));
  worker_of_ring[ring] = lcore;
  pairs.resize(std::max(pairs.size(), rings.pairs()), {.worker = kNobody});
  for (std::uint16_t sender = 0; sender < rings.rings()[ring].senders(); ++sender) {
    const std::uint16_t forward = rings.pair_of(ring::RingChild{ring, sender});
    for (const std::uint16_t number : {forward, rings.reverse_of(forward)}) {
      Pair& pair = pairs[number - 1u];
      pair.worker = pair.worker == kNobody ? lcore : pair.worker;
      pair.is_shared = pair.is_shared || pair.worker != lcore;
    }
  }
}

std::size_t worker_for(const Placement& placement, const ring::RingSet& present,
                       const ring::Ring& ring) {
  std::map<std::size_t, std::size_t> beside;
  for (const std::uint16_t other : rings_beside(present, ring)) {
    ++beside[placement.worker_of_ring[other]];
  }
  const std::optional<std::size_t> first = first_worker_of(placement, present, ring);
  if (!ring.is_root() && first) {
    return *first;
  }
  const auto frames = frames_of_workers(placement, present);
  return std::ranges::min_element(frames, {},
                                  [&](const auto& worker) {
                                    return std::tuple(beside[worker.first], worker.second,
                                                      worker.first != first);
                                  })
      ->first;
}

std::string eal_lcores(const Placement& placement) {
  std::string map = fmt::format("0@{}", placement.control_cpu);
  for (std::size_t i = 0; i < placement.lcores.size(); ++i) {
    map += fmt::format(",{}@{}", i + 1, placement.lcores[i].id);
  }
  return map;
}

std::size_t owner_of_regions(const Placement& placement) {
  const auto first = std::ranges::find(placement.lcores, true, &Placement::DataLcore::works);
  return static_cast<std::size_t>(first - placement.lcores.begin());
}

} // namespace weir::control
