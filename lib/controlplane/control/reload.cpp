// SPDX-License-Identifier: BSD-3-Clause
#include "control/reload.hpp"

#include "control/captures.hpp"
#include "control/chassis.hpp"
#include "control/port_admin.hpp"
#include "control/port_rules.hpp"
#include "control/ring_admin.hpp"
#include "control/settings.hpp"
#include "lcore/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace weir::control {

using lcore::Quiesce;

namespace {

/// "rings[8], l2.aging_s"
std::string places_not_in_force(const std::vector<config::Change>& changes) {
  std::vector<std::string_view> places;
  for (const config::Change& change : changes) {
    places.push_back(change.place);
  }
  return fmt::format("{}", fmt::join(places, ", "));
}

} // namespace

/// The ports that a reload opens, started, before the switch takes them. Those that it has not
/// taken are closed and detached when this object goes.
class Reload::NewPorts {
 public:
  /// Throws PortError; no device is open then.
  NewPorts(const PortPlan& plan, rte_mempool* pool) {
    try {
      for (auto place = plan.opened.rbegin(); place != plan.opened.rend(); ++place) {
        ports_.push_back(std::make_shared<Port>(plan.places[*place]));
        ports_.back()->start(pool);
      }
    } catch (const PortError&) {
      detach_all();
      throw;
    }
  }

  ~NewPorts() { detach_all(); }

  NewPorts(const NewPorts&) = delete;
  NewPorts& operator=(const NewPorts&) = delete;

  /// The next one that is not taken, in the plan's order.
  std::shared_ptr<Port> next() const { return ports_.back(); }

  /// The switch has the next one now.
  void take_next() { ports_.pop_back(); }

 private:
  void detach_all() {
    for (const auto& port : ports_) {
      try {
        port->detach();
      } catch (const PortError&) { // it is closed: the next try says what is wrong with the device
      }
    }
    ports_.clear();
  }

  std::vector<std::shared_ptr<Port>> ports_; // the next one last
};

Reload::Reload(const Parts& parts)
    : chassis_(parts.chassis), captures_(parts.captures), rings_(parts.rings), ports_(parts.ports),
      port_budget_(parts.chassis.at_start) {}

std::vector<config::Change> Reload::rehearse() {
  const std::lock_guard one(one_reload_);
  const WantedConfig wanted = read_file();
  const WriterLock lock(chassis_.one_writer);
  return plan_for(wanted, lock).plan.changes;
}

std::vector<config::Change> Reload::apply() {
  const std::lock_guard one(one_reload_);
  const WantedConfig wanted = read_file();
  const WriterLock lock(chassis_.one_writer);
  Fitted fitted = plan_for(wanted, lock);
  NewPorts ports(wanted.ports, chassis_.pool);
  remember(fitted.plan, lock);
  try {
    carry_out(fitted, wanted, ports, lock);
  } catch (const std::exception& error) {
    throw ReloadUnfinished(fmt::format(
        "{}; not in force: {}", error.what(),
        places_not_in_force(config::difference(rings_.config_in_force(lock), wanted.config))));
  }
  return std::move(fitted.plan.changes);
}

const std::string& Reload::file() const {
  return chassis_.at_start.file;
}

/// Without the writer's lock: it may take long. Only a reload changes what is compared.
WantedConfig Reload::read_file() const {
  return read_wanted(*chassis_.config.share(), port_budget_);
}

Reload::Fitted Reload::plan_for(const WantedConfig& wanted, const WriterLock& lock) const {
  const ring::RingSet& present = chassis_.rings.read(lock);
  Fitted fitted{.plan = plan_reload(rings_.config_in_force(lock), wanted, present), .lcores = {}};
  RingAdmission rings = rings_.admission(lock);
  for (const ring::RingSpec& spec : fitted.plan.withdrawn) {
    rings.withdraw(index_of(present, spec.id));
  }
  rings.change(fitted.plan.changed);
  for (const ring::RingSpec& spec : fitted.plan.added) {
    rings_.check_may_add(spec, lock);
    fitted.lcores.push_back(rings.add(spec));
  }
  check_opened(wanted.ports, fitted.plan, lock);
  check_closed(wanted.ports, fitted.plan, lock);
  return fitted;
}

/// The file's rings suit the ports already.
void Reload::check_opened(const PortPlan& ports, const ReloadPlan& rings,
                          const WriterLock& lock) const {
  const auto capture = captures_.last();
  for (const std::uint16_t place : ports.opened) {
    const config::PortConfig& port = ports.places[place];
    if (capture && capture->state == capture::State::running) {
      throw PortError(fmt::format("port {}: {} is being written with the ports that there are; "
                                  "allowed: `capture stop` before it",
                                  port.name, capture->file));
    }
    for (const ring::RingSpec& ring : rings.staying(chassis_.rings.read(lock))) {
      check_mtu(port, ring);
    }
  }
  if (!ports.opened.empty() && chassis_.at_start.regions) {
    check_mtu_of_regions(ports);
  }
}

/// The members of an open one have said by which ports they come. Only a switch that can have
/// regions stops its lcores for the question, once.
void Reload::check_mtu_of_regions(const PortPlan& ports) const {
  const Quiesce quiesced(chassis_.lcores);
  for (const auto& region : chassis_.worker_of_regions(quiesced).regions().regions()) {
    for (const std::uint16_t place : ports.opened) {
      if (region->state() == region::State::forming) {
        check_mtu(ports.places[place], region->spec());
      }
    }
  }
}

void Reload::check_closed(const PortPlan& ports, const ReloadPlan& rings,
                          const WriterLock& lock) const {
  if (ports.closed.empty()) {
    return;
  }
  const ring::RingSet& present = chassis_.rings.read(lock);
  const std::vector<ring::RingSpec> staying = rings.staying(present);
  const config::Config& running = chassis_.config.read(lock);
  const Quiesce quiesced(chassis_.lcores);
  for (const std::uint16_t place : ports.closed) {
    for (const ring::RingSpec& ring : staying) {
      if (ports_.speaks_by(index_of(present, ring.id), ring, place, quiesced)) {
        throw PortError(fmt::format("port {}: a member of ring {} is behind it; allowed: `reset "
                                    "ring {}` when its job has ended, or `withdraw ring {}`",
                                    running.ports[place].name, ring.id, ring.id, ring.id));
      }
    }
    check_regions_of(place, running.ports[place].name, quiesced);
  }
}

/// The place may be given to another port, whose host would get what is the member's.
void Reload::check_regions_of(std::uint16_t place, const std::string& name,
                              const Quiesce& quiesced) const {
  const auto* const region = chassis_.worker_of_regions(quiesced).regions().user_of(place);
  if (region != nullptr) {
    throw PortError(fmt::format("port {}: a member of region {} is behind it; allowed: `withdraw "
                                "region {}`",
                                name, region->spec().id, region->spec().id));
  }
}

/// The file of the next start may have none of these rings.
void Reload::remember(const ReloadPlan& plan, const WriterLock& lock) {
  for (const auto* rings : {&plan.withdrawn, &plan.added}) {
    for (const ring::RingSpec& spec : *rings) {
      rings_.remember(spec, lock);
    }
  }
}

/// Ports are open, and rooms are made where memory suffices, before the first ring goes: whatever
/// has failed by then has changed nothing.
void Reload::carry_out(const Fitted& fitted, const WantedConfig& wanted, NewPorts& ports,
                       const WriterLock& lock) {
  const ReloadPlan& plan = fitted.plan;
  std::vector<std::unique_ptr<stage::WorkerRing>> rooms;
  for (std::size_t i = 0; i < plan.added.size(); ++i) {
    rooms.push_back(rings_.room_if_any(plan.added[i], fitted.lcores[i]));
  }
  for (const std::uint16_t place : wanted.ports.opened) {
    ports_.open(place, ports.next(), lock);
    ports.take_next();
  }
  for (const ring::RingSpec& spec : plan.withdrawn) {
    rings_.withdraw(spec.id, lock);
  }
  if (plan.changes_in_place()) {
    change_in_place(plan, wanted.config, lock);
  }
  for (std::size_t i = 0; i < plan.added.size(); ++i) {
    rings_.enter_configured(plan.added[i], fitted.lcores[i], std::move(rooms[i]), lock);
  }
  for (const std::uint16_t place : wanted.ports.closed) {
    ports_.close(place, lock);
  }
}

void Reload::change_in_place(const ReloadPlan& plan, const config::Config& wanted,
                             const WriterLock& lock) {
  auto next =
      std::make_shared<const ring::RingSet>(chassis_.rings.read(lock).with_changed(plan.changed));
  auto changed = std::make_shared<const config::Config>(
      config::changed_in_place(chassis_.config.read(lock), wanted));
  const RuleSweep sweep(chassis_, lock);
  install_rules(chassis_.ports.read(lock), *next, chassis_.placement.read(lock));
  {
    const Quiesce quiesced(chassis_.lcores);
    changed = chassis_.config.swap(std::move(changed), lock, quiesced);
    chassis_.bridge.shut(unbridged_ports(chassis_.config.read(quiesced)),
                         l2::Bridge::Why::configured);
    next = chassis_.swap_rings(std::move(next), lock, quiesced);
    for (const ring::RingSpec& spec : plan.changed) {
      rings_.note_change(index_of(chassis_.rings.read(quiesced), spec.id), lock, quiesced);
    }
    for (const auto& lcore : chassis_.lcores) {
      lcore->set_aging(milliseconds(wanted.connections.aging_s));
    }
  }
  chassis_.stations.set_aging(milliseconds(wanted.l2.aging_s));
  change_stations(*changed, chassis_.config.read(lock));
}

/// Those that are tied no longer go first: their places may be needed.
void Reload::change_stations(const config::Config& before, const config::Config& now) {
  const std::uint64_t now_ms = lcore::Clock().now().ms();
  for (const config::StationConfig& station : before.stations) {
    if (std::ranges::find(now.stations, station.mac, &config::StationConfig::mac) ==
        now.stations.end()) {
      chassis_.stations.untie(station.mac, now_ms);
    }
  }
  tie_stations(now, chassis_.stations, now_ms);
  l2::for_each_port(unbridged_ports(now) & ~unbridged_ports(before),
                    [&](std::uint16_t place) { chassis_.stations.forget_port(place); });
}

} // namespace weir::control
