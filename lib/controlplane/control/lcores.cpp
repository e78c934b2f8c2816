// SPDX-License-Identifier: BSD-3-Clause
#include "control/lcores.hpp"

#include <algorithm>

namespace weir::control {

using lcore::Lcore;

namespace {

stage::Worker::Settings with_own_sessions(stage::Worker::Settings settings) {
  settings.classifier.sessions = settings.classifier.sessions.with_key(conn::HashKey::random());
  return settings;
}

lcore::Idle idle_of(config::Idle configured) {
  switch (configured) {
  case config::Idle::yield:
    return lcore::Idle::yield;
  case config::Idle::sleep:
    return lcore::Idle::sleep;
  case config::Idle::spin:
    break;
  }
  return lcore::Idle::spin;
}

void route_pair(Lcore& lcore, std::uint16_t pair, const Placement& placement, Lcore& first) {
  lcore.route_pair(pair, first,
                   placement.pair(pair).is_shared ? lcore::PairWorkers::several
                                                  : lcore::PairWorkers::one);
}

} // namespace

void route_ring(lcore::LcoreSet& lcores, std::uint16_t ring, const ring::RingSet& rings,
                const Placement& placement) {
  const std::size_t worker = placement.worker_of_ring[ring];
  for (const auto& lcore : lcores) {
    for (std::uint16_t sender = 0; sender < rings.rings()[ring].senders(); ++sender) {
      const std::uint16_t pair = rings.pair_of(ring::RingChild{ring, sender});
      for (const std::uint16_t direction : {pair, rings.reverse_of(pair)}) {
        route_pair(*lcore, direction, placement, lcores[placement.pair(direction).worker]);
      }
    }
    lcore->route_ring(ring, lcores[worker], static_cast<std::uint16_t>(worker));
  }
}

std::vector<std::unique_ptr<Lcore>> make_lcores(const Placement& placement,
                                                const Lcore::Shared& shared,
                                                const stage::Worker::Settings& settings,
                                                std::span<const lcore::TxQueues> queues_of_port,
                                                std::span<EalMemory> memories) {
  std::vector<std::unique_ptr<Lcore>> lcores;
  for (const Placement::DataLcore& place : placement.lcores) {
    auto& lcore = *lcores.emplace_back(
        std::make_unique<Lcore>(place.id, idle_of(place.idle), shared, place.node));
    for (const Placement::Queue& queue : place.receives) {
      lcore.add_rx_queue({queue.port, queues_of_port[queue.port].device, queue.queue});
    }
    for (const std::uint16_t port : place.transmits) {
      lcore.add_tx_port(port, queues_of_port[port]);
    }
    if (place.works) {
      stage::Worker::Settings own = with_own_sessions(settings);
      own.queue_room = place.queue_room;
      own.classifier.worker = static_cast<std::uint16_t>(lcores.size() - 1);
      own.memory = memories.empty() ? settings.memory : &memories[lcores.size() - 1];
      lcore.make_worker(place.rings, own);
    }
  }
  for (std::size_t i = 0; i < lcores.size() && shared.regions; ++i) {
    lcores[i]->route_regions(*lcores[owner_of_regions(placement)]);
  }
  for (std::size_t i = 0; i < lcores.size(); ++i) {
    if (const auto helped = placement.lcores[i].helps) {
      lcores[*helped]->add_helper(*lcores[i]);
    }
  }
  for (const auto& lcore : lcores) {
    for (const std::size_t transmitter : placement.transmitters) {
      lcore->reach_transmitter(*lcores[transmitter]);
    }
    for (std::uint16_t port = 0; port < queues_of_port.size(); ++port) {
      lcore->route_port(port, *lcores[placement.transmitter_of_port[port]]);
    }
    for (std::uint16_t pair = 1; pair <= placement.pairs.size(); ++pair) {
      route_pair(*lcore, pair, placement, *lcores[placement.pair(pair).worker]);
    }
    for (const std::uint16_t ring : shared.rings->present()) {
      const std::size_t worker = placement.worker_of_ring[ring];
      lcore->route_ring(ring, *lcores[worker], static_cast<std::uint16_t>(worker));
    }
    for (std::size_t i = 0; i < lcores.size() && settings.classifier.spare_rings != 0; ++i) {
      if (placement.lcores[i].works) {
        lcore->reach(*lcores[i]);
      }
    }
  }
  return lcores;
}

} // namespace weir::control
