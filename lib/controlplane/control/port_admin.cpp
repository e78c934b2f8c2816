// SPDX-License-Identifier: BSD-3-Clause
#include "control/port_admin.hpp"

#include "control/chassis.hpp"
#include "control/port_rules.hpp"
#include "control/ring_admin.hpp"
#include "control/settings.hpp"
#include "lcore/clock.hpp"

#include <algorithm>
#include <cassert>
#include <thread>
#include <utility>

namespace weir::control {

using lcore::Lcore;
using lcore::Quiesce;

void PortAdmin::clear_counters(std::uint16_t place) {
  counts_.clear(place);
  if (const std::shared_ptr<Port> open = chassis_.ports.share()->at(place); open) {
    open->clear_statistics();
  }
}

void PortAdmin::follow_links() {
  l2::PortSet down = 0;
  const std::shared_ptr<const Ports> ports = chassis_.ports.share();
  for (std::size_t place = 0; place < ports->size(); ++place) {
    const bool is_down = ports->at(place) && ports->at(place)->is_down();
    down |= is_down ? l2::set_of(static_cast<std::uint16_t>(place)) : 0;
  }
  if (down == ports_down_) {
    return;
  }
  const Quiesce quiesced(chassis_.lcores);
  ports_down_ = down;
  for (std::size_t lcore = 0; lcore < chassis_.lcores.size(); ++lcore) {
    if (chassis_.lcores[lcore].worker() != nullptr) {
      chassis_.worker_at(lcore, quiesced).set_ports_down(down, lcore::Clock().now());
    }
  }
}

void PortAdmin::open(std::uint16_t place, const std::shared_ptr<Port>& port,
                     const WriterLock& lock) {
  const config::PortConfig& settings = port->config();
  config::Config changed = chassis_.config.read(lock);
  changed.ports.resize(std::max<std::size_t>(changed.ports.size(), place + 1U));
  changed.ports[place] = settings;
  auto next_ports = std::make_shared<Ports>(chassis_.ports.read(lock));
  next_ports->resize(changed.ports.size());
  assert(!next_ports->at(place));
  next_ports->at(place) = port;
  auto queues = queues_of(*port, place, lock);
  auto tags = outer_tags(changed);
  Placement placement = chassis_.placement.read(lock);
  placement.open_port(place, settings.rx_queues, port->numa_node());
  auto placed = std::make_shared<const Placement>(std::move(placement));
  auto next = std::make_shared<const config::Config>(std::move(changed));
  std::shared_ptr<const Ports> former_ports;
  port->install_rules(plan_steering(chassis_.rings.read(lock), *placed, place));

  const Quiesce quiesced(chassis_.lcores);
  counts_.begin(place, quiesced);
  next = chassis_.config.swap(std::move(next), lock, quiesced);
  placed = chassis_.placement.swap(std::move(placed), lock, quiesced);
  chassis_.shared->outer_tags.swap(tags);
  give_device(place, *port, std::move(queues), quiesced);
  withhold_unless_started(place, *port, quiesced);
  for (const auto& lcore : chassis_.lcores) {
    lcore->set_frame_limit(place, stage::max_frame_bytes(settings.mtu));
  }
  chassis_.bridge.shut(unbridged_ports(chassis_.config.read(quiesced)),
                       l2::Bridge::Why::configured);
  chassis_.bridge.add_port(place);
  former_ports = chassis_.ports.swap(std::move(next_ports), lock, quiesced);
}

std::unique_ptr<lcore::TxPort> PortAdmin::queues_of(const Port& port, std::uint16_t place,
                                                    const WriterLock& lock) const {
  lcore::TxQueues queues = port.tx_queues();
  queues.ring_backlog = ring_backlog_of(rings_.config_in_force(lock), place);
  return std::make_unique<lcore::TxPort>(queues);
}

/// To the lcores that the placement says.
void PortAdmin::give_device(std::uint16_t place, const Port& port,
                            std::unique_ptr<lcore::TxPort> queues, const Quiesce& quiesced) {
  const Placement& placement = chassis_.placement.read(quiesced);
  Lcore& transmitter = chassis_.lcores[placement.transmitter_of_port[place]];
  transmitter.add_tx_port(place, std::move(queues));
  for (std::size_t i = 0; i < chassis_.lcores.size(); ++i) {
    chassis_.lcores[i].route_port(place, transmitter);
    for (const Placement::Queue& queue : placement.lcores[i].receives) {
      if (queue.port == place) {
        chassis_.lcores[i].add_rx_queue({place, port.tx_queues().device, queue.queue});
      }
    }
  }
}

/// Lcores have ports from their making on.
void PortAdmin::withhold_unstarted() {
  const std::shared_ptr<const Ports> ports = chassis_.ports.share();
  const Quiesce quiesced(chassis_.lcores);
  for (std::size_t place = 0; place < ports->size(); ++place) {
    withhold_unless_started(static_cast<std::uint16_t>(place), *ports->at(place), quiesced);
  }
}

/// reconnect() gives it back.
void PortAdmin::withhold_unless_started(std::uint16_t place, const Port& port, const Quiesce&) {
  if (port.is_started()) {
    return;
  }
  for (const auto& lcore : chassis_.lcores) {
    lcore->remove_rx_queues(place);
    lcore->close_tx_port(place);
  }
}

/// First receiving ends; then, when what has come by the port is worked off, it takes no more.
void PortAdmin::take_device(std::uint16_t place) {
  {
    const Quiesce quiesced(chassis_.lcores);
    for (const auto& lcore : chassis_.lcores) {
      lcore->remove_rx_queues(place);
    }
  }
  std::this_thread::sleep_for(kDrainTime);
  const Quiesce quiesced(chassis_.lcores);
  for (const auto& lcore : chassis_.lcores) {
    lcore->close_tx_port(place);
  }
}

void PortAdmin::mend() {
  const WriterLock lock(chassis_.one_writer);
  for (std::uint16_t place = 0; place < chassis_.ports.read(lock).size(); ++place) {
    mend(place, lock);
  }
}

void PortAdmin::mend(std::uint16_t place, const WriterLock& lock) {
  const std::shared_ptr<Port> port = chassis_.ports.read(lock)[place];
  try {
    if (port && port->can_be_replaced()) {
      replace(place, lock);
    } else if (port && port->can_reconnect()) {
      reconnect(place, lock);
    }
  } catch (const PortError& error) {
    port->tell_why_gone(error.what());
  }
}

/// Its device's name is free only when the former device is detached. If the new one cannot be
/// opened, the closed port keeps the place.
void PortAdmin::replace(std::uint16_t place, const WriterLock& lock) {
  const std::shared_ptr<Port> former = chassis_.ports.read(lock).at(place);
  take_device(place);
  former->detach();
  const auto port = std::make_shared<Port>(former->config());
  port->start(chassis_.pool);
  auto queues = queues_of(*port, place, lock);
  auto next_ports = std::make_shared<Ports>(chassis_.ports.read(lock));
  next_ports->at(place) = port;
  std::shared_ptr<const Ports> former_ports;

  const Quiesce quiesced(chassis_.lcores);
  give_device(place, *port, std::move(queues), quiesced);
  former_ports = chassis_.ports.swap(std::move(next_ports), lock, quiesced);
}

/// A port that cannot be started stays without lcores until the next try.
void PortAdmin::reconnect(std::uint16_t place, const WriterLock& lock) {
  const std::shared_ptr<Port> port = chassis_.ports.read(lock).at(place);
  take_device(place);
  port->restart();
  auto queues = queues_of(*port, place, lock);
  const Quiesce quiesced(chassis_.lcores);
  give_device(place, *port, std::move(queues), quiesced);
  withhold_unless_started(place, *port, quiesced);
}

/// As take_device(), and the rings forget the port.
void PortAdmin::close(std::uint16_t place, const WriterLock& lock) {
  {
    const Quiesce quiesced(chassis_.lcores);
    chassis_.bridge.remove_port(place);
    for (const auto& lcore : chassis_.lcores) {
      lcore->remove_rx_queues(place);
    }
  }
  std::this_thread::sleep_for(kDrainTime);
  config::Config changed = chassis_.config.read(lock);
  changed.ports[place] = {};
  auto next = std::make_shared<const config::Config>(std::move(changed));
  Placement placement = chassis_.placement.read(lock);
  placement.close_port(place);
  auto placed = std::make_shared<const Placement>(std::move(placement));
  auto others = std::make_shared<Ports>(chassis_.ports.read(lock));
  const std::shared_ptr<Port> port = std::exchange(others->at(place), nullptr);
  assert(port != nullptr);
  std::shared_ptr<const Ports> former_ports;
  {
    const Quiesce quiesced(chassis_.lcores);
    forget_members_behind(place, quiesced);
    for (const auto& lcore : chassis_.lcores) {
      lcore->close_tx_port(place);
      lcore->set_frame_limit(place, std::nullopt);
    }
    placed = chassis_.placement.swap(std::move(placed), lock, quiesced);
    next = chassis_.config.swap(std::move(next), lock, quiesced);
    former_ports = chassis_.ports.swap(std::move(others), lock, quiesced);
  }
  chassis_.stations.forget_port(place);
  port->detach();
}

/// Of a hello that came just now.
void PortAdmin::forget_members_behind(std::uint16_t place, const Quiesce& quiesced) {
  const ring::RingSet& rings = chassis_.rings.read(quiesced);
  for (const std::uint16_t ring : rings.present()) {
    if (speaks_by(ring, rings.rings()[ring].spec(), place, quiesced)) {
      chassis_.worker_of(ring, quiesced).reset_ring(ring, lcore::Clock().now());
    }
  }
}

bool PortAdmin::speaks_by(std::uint16_t ring, const ring::RingSpec& as_it_will_be,
                          std::uint16_t place, const Quiesce& quiesced) const {
  const conn::Incarnations& incarnations = chassis_.worker_of(ring, quiesced).incarnations();
  const ring::Ring wanted(as_it_will_be);
  for (std::uint16_t sender = 0; sender < wanted.senders(); ++sender) {
    if (wanted.port_of(sender).value_or(place) == place &&
        incarnations.speaks_by({ring, sender}, place)) {
      return true;
    }
  }
  return false;
}

} // namespace weir::control
