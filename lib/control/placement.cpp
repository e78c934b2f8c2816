// SPDX-License-Identifier: BSD-3-Clause
#include "control/placement.hpp"

#include <fmt/format.h>

#include <algorithm>

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

} // namespace

Placement place(const config::Config& config, const ring::RingSet& rings) {
  Placement placement;
  Dealer receivers;
  Dealer workers;
  Dealer transmitters;
  for (const config::LcoreConfig& lcore : config.lcores) {
    if (plays(lcore, config::Role::control)) {
      placement.control_cpu = lcore.id;
    }
    if (!plays_data_role(lcore)) {
      continue;
    }
    const std::size_t index = placement.lcores.size();
    placement.lcores.push_back({.id = lcore.id,
                                .idle = lcore.idle,
                                .receives = {},
                                .transmits = {},
                                .rings = {},
                                .works = plays(lcore, config::Role::worker),
                                .helps = {}});
    if (plays(lcore, config::Role::rx)) {
      receivers.add(index);
    }
    if (plays(lcore, config::Role::worker)) {
      workers.add(index);
    }
    if (plays(lcore, config::Role::tx)) {
      transmitters.add(index);
    }
  }
  for (std::uint16_t port = 0; port < config.ports.size(); ++port) {
    for (std::uint16_t queue = 0; queue < config.ports[port].rx_queues; ++queue) {
      placement.lcores[receivers.next()].receives.push_back({port, queue});
    }
    placement.transmitter_of_port.push_back(transmitters.next());
    placement.lcores[placement.transmitter_of_port.back()].transmits.push_back(port);
  }
  for (std::uint16_t ring = 0; ring < rings.rings().size(); ++ring) {
    // A group has the number of one of its rings, so this deals each group once.
    placement.worker_of_group.push_back(rings.group_of_ring(ring) == ring ? workers.next()
                                                                          : std::size_t{0});
  }
  for (std::uint16_t ring = 0; ring < rings.rings().size(); ++ring) {
    const std::size_t worker = placement.worker_of_group[rings.group_of_ring(ring)];
    placement.worker_of_ring.push_back(worker);
    placement.lcores[worker].rings.push_back(ring);
  }
  deal_helpers(placement);
  return placement;
}

std::string eal_lcores(const Placement& placement) {
  std::string map = fmt::format("0@{}", placement.control_cpu);
  for (std::size_t i = 0; i < placement.lcores.size(); ++i) {
    map += fmt::format(",{}@{}", i + 1, placement.lcores[i].id);
  }
  return map;
}

} // namespace weir::control
