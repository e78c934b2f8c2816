// SPDX-License-Identifier: BSD-3-Clause
#include "report/answers.hpp"

#include "config/keys.hpp"
#include "frame/frame.hpp"
#include "report/table_shapes.hpp"
#include "report/tables.hpp"
#include "stage/graph.hpp"
#include "text/number.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir::report {
namespace {

constexpr std::size_t kStuckShown = 16;

using Ports = std::vector<std::shared_ptr<const control::Port>>; // by place

std::vector<std::string> names_in(const Ports& ports) {
  std::vector<std::string> names;
  for (const auto& port : ports) {
    if (port) {
      names.push_back(port->name());
    }
  }
  return names;
}

std::uint16_t place_named(const Ports& ports, std::string_view name) {
  const auto found = std::ranges::find_if(
      ports, [name](const auto& port) { return port && port->name() == name; });
  if (found == ports.end()) {
    throw UnknownName(fmt::format("port: found '{}'; allowed: {}, {}", name, kAll,
                                  fmt::join(names_in(ports), ", ")));
  }
  return static_cast<std::uint16_t>(found - ports.begin());
}

/// Calls visit(place, port).
template <typename Visitor>
void for_ports(const control::Switch& weir, std::string_view name, Visitor&& visit) {
  const Ports ports = weir.inspector().ports();
  if (name != kAll) {
    const std::uint16_t place = place_named(ports, name);
    visit(place, *ports[place]);
    return;
  }
  for (std::uint16_t place = 0; place < ports.size(); ++place) {
    if (ports[place]) {
      visit(place, *ports[place]);
    }
  }
}

/// Names of ports by their places, also when they are asked for a port that has come since or has
/// gone.
class PortNames {
 public:
  explicit PortNames(const control::Switch& weir) : config_(weir.inspector().config()) {}

  std::string of(std::uint16_t place) const {
    const bool is_there = place < config_->ports.size() && config_->ports[place].is_there();
    return is_there ? config_->ports[place].name : fmt::format("(closed {})", place);
  }

  std::string of_all(l2::PortSet ports) const {
    std::vector<std::string> names;
    l2::for_each_port(ports, [&](std::uint16_t port) { names.push_back(of(port)); });
    return fmt::format("{}", fmt::join(names, ","));
  }

  /// A frame that the switch has made came in by no port.
  std::string of_ingress(const frame::TraceRecord& record) const {
    return record.ingress == frame::kNoPort ? "-" : of(record.ingress);
  }

 private:
  std::shared_ptr<const config::Config> config_;
};

Table lcores_table(const std::vector<control::LcoreSnapshot>& lcores) {
  Table table(tables::kLcores);
  for (const control::LcoreSnapshot& lcore : lcores) {
    const auto& rounds = lcore.rounds;
    const double busy = rounds.rounds == 0
                            ? 0.0
                            : 100.0 * static_cast<double>(rounds.rounds - rounds.idle_rounds) /
                                  static_cast<double>(rounds.rounds);
    table.rows.push_back({std::uint64_t{lcore.id}, lcore.roles, std::to_string(lcore.numa_node),
                          std::uint64_t{lcore.rings}, rounds.rounds, rounds.idle_rounds,
                          rounds.starved_rounds, rounds.reductions_for_others, rounds.handed_over,
                          busy, lcore.frames.received, lcore.frames.forwarded,
                          lcore.frames.consumed, lcore.frames.all_dropped(), lcore.held});
  }
  return table;
}

Report changes_report(std::span<const config::Change> changes, std::string note) {
  Table table(tables::kChanges);
  table.note = std::move(note);
  for (const config::Change& change : changes) {
    table.rows.push_back({change.place, change.from, change.to,
                          std::string(config::name_of(change.effect)),
                          std::string(config::text_of(change.effect))});
  }
  return {table};
}

} // namespace

std::vector<std::string> port_names(const control::Switch& weir) {
  return names_in(weir.inspector().ports());
}

std::vector<std::string> ring_ids(const control::Switch& weir) {
  std::vector<std::string> ids;
  const auto set = weir.inspector().ring_set();
  for (const std::uint16_t ring : set->present()) {
    ids.push_back(std::to_string(set->rings()[ring].spec().id));
  }
  return ids;
}

std::uint32_t ring_id(const control::Switch& weir, std::string_view name) {
  const auto id = text::parsed<std::uint32_t>(name);
  if (id && weir.inspector().ring_set()->ring_with_id(*id)) {
    return *id;
  }
  const std::string ids = fmt::format("{}", fmt::join(ring_ids(weir), ", "));
  throw UnknownName(
      fmt::format("ring: found '{}'; allowed: {}", name, ids.empty() ? "there is none" : ids));
}

std::uint16_t port_named(const control::Switch& weir, std::string_view name) {
  return place_named(weir.inspector().ports(), name);
}

Report show_port_information(control::Switch& weir, std::string_view name) {
  Table table(tables::kPortInfo);
  for_ports(weir, name, [&](std::uint16_t, const control::Port& port) {
    const control::PortInformation information = port.information();
    table.rows.push_back({port.name(), port.config().device, information.driver, information.mac,
                          information.link, std::uint64_t{information.mtu},
                          std::uint64_t{port.config().rx_queues},
                          std::to_string(information.numa_node),
                          std::string(information.promiscuous ? "on" : "off")});
  });
  return {table};
}

Report show_port_steering(control::Switch& weir, std::string_view name) {
  Table table(tables::kPortSteering);
  for_ports(weir, name, [&](std::uint16_t, const control::Port& port) {
    const control::SteeringState state = port.steering().value_or(control::SteeringState{});
    const auto by = static_cast<std::size_t>(port.config().rx_steering);
    table.rows.push_back({port.name(), std::string(config::kRxSteeringNames[by]),
                          std::uint64_t{state.steered}, std::uint64_t{state.refused},
                          std::uint64_t{state.without_queue},
                          state.reason.empty() ? std::string("-") : state.reason});
  });
  return {table};
}

Report show_port_statistics(control::Switch& weir, std::string_view name) {
  Table table(tables::kPortStats);
  for_ports(weir, name, [&](std::uint16_t index, const control::Port& port) {
    const frame::PortCounters counters = weir.inspector().port_counters(index);
    const control::DeviceLosses losses = port.losses();
    const frame::ClassCounters& ring = counters.sent(frame::TrafficClass::ring);
    const frame::ClassCounters& other = counters.sent(frame::TrafficClass::other);
    table.rows.push_back({port.name(), counters.rx_packets.get(), counters.rx_bytes.get(),
                          losses.rx_missed, losses.rx_errors, ring.packets + other.packets,
                          ring.bytes + other.bytes, losses.tx_errors, ring.packets.get(),
                          ring.dropped.get(), other.packets.get(), other.dropped.get()});
  });
  return {table};
}

Report show_port_extended(control::Switch& weir, std::string_view name) {
  Table table(tables::kPortXstats);
  for_ports(weir, name, [&](std::uint16_t, const control::Port& port) {
    for (const auto& [statistic, value] : port.extended_statistics()) {
      table.rows.push_back({port.name(), statistic, value});
    }
  });
  return {table};
}

void clear_port_statistics(control::Switch& weir, std::string_view name) {
  for_ports(weir, name,
            [&](std::uint16_t index, const control::Port&) { weir.ports().clear_counters(index); });
}

Report show_rings(control::Switch& weir, std::string_view name) {
  if (name == kAll) {
    const control::RingsSeen seen = weir.inspector().rings();
    return {rings_table(*seen.set, seen.rings)};
  }
  const control::RingsSeen seen = weir.inspector().ring(ring_id(weir, name));
  const stage::RingSnapshot& snapshot = seen.rings.front();
  return {rings_table(*seen.set, seen.rings),
          members_table(seen.set->rings()[snapshot.ring].spec(), snapshot),
          recovery_table(snapshot),
          ring_drops_table(snapshot),
          slot_time_table(snapshot),
          ring_queue_table(seen.set->rings()[snapshot.ring].spec(), snapshot)};
}

Report show_stuck(control::Switch& weir, std::string_view name) {
  const auto [spec, stuck] = weir.inspector().stuck_slots(ring_id(weir, name), kStuckShown);
  return {stuck_table(spec, stuck.slots), waited_for_table(spec, stuck)};
}

void reset_ring(control::Switch& weir, std::string_view name, const control::Principal& principal) {
  weir.rings().reset(ring_id(weir, name), principal);
}

void withdraw_ring(control::Switch& weir, std::string_view name,
                   const control::Principal& principal) {
  weir.rings().withdraw(ring_id(weir, name), principal);
}

std::vector<std::uint32_t> add_rings(control::Switch& weir, std::string_view file) {
  std::vector<std::uint32_t> added;
  for (const ring::RingSpec& ring : config::load_rings(file, *weir.inspector().config())) {
    weir.rings().add(ring);
    added.push_back(ring.id);
  }
  return added;
}

Report reload(control::Switch& weir) {
  return changes_report(weir.reload().apply(), "in force, but for what takes a restart");
}

Report rehearse_reload(control::Switch& weir) {
  return changes_report(weir.reload().rehearse(), "nothing has changed: this was a dry run");
}

Report show_connections(control::Switch& weir) {
  return {connections_table(weir.inspector().connections())};
}

Report show_drops(control::Switch& weir) {
  const stage::Accounting accounting = weir.inspector().accounting();
  return {drops_table(accounting.frames), foreign_table(accounting.frames)};
}

Report show_graph(control::Switch& weir) {
  return {graph_table(weir.inspector().accounting().frames)};
}

Report show_accounting(control::Switch& weir) {
  return {accounting_table(weir.inspector().accounting())};
}

Report show_stations(control::Switch& weir) {
  Table table(tables::kFdb);
  const PortNames names(weir);
  for (const control::Station& station : weir.inspector().stations()) {
    table.rows.push_back({wire::to_string(station.mac), names.of(station.port),
                          static_cast<double>(station.age_ms) / 1000.0, station.pins});
  }
  std::sort(table.rows.begin(), table.rows.end());
  return {table};
}

Report show_lcores(control::Switch& weir) {
  const auto lcores = weir.inspector().lcores();
  frame::Histogram bursts;
  frame::Histogram stood_still;
  for (const control::LcoreSnapshot& lcore : lcores) {
    bursts += lcore.rounds.rx_burst;
    stood_still += lcore.rounds.quiescent_ns;
  }
  return {lcores_table(lcores), histogram_table(tables::kRxBurst, bursts),
          histogram_table(tables::kStoodStill, stood_still)};
}

Report show_memory(control::Switch& weir) {
  const control::MemoryPlan& plan = weir.inspector().memory_plan();
  Table table(tables::kMemory);
  table.note = plan.explanation;
  table.rows.push_back({std::uint64_t{plan.mbufs}, std::uint64_t{weir.inspector().free_mbufs()},
                        std::uint64_t{plan.data_room},
                        static_cast<double>(plan.pool_bytes) / control::kMiB,
                        static_cast<double>(plan.ring_bytes) / control::kMiB});
  return {table};
}

Report show_trace(control::Switch& weir) {
  Table table(tables::kTrace);
  const auto records = weir.traces().records();
  const auto set = weir.inspector().ring_set();
  const PortNames names(weir);
  const std::uint64_t start = records.empty() ? 0 : records.front().now_ns;
  for (const frame::TraceRecord& record : records) {
    const bool in_ring = names_a_slot(record.event);
    const auto ring_cell = [in_ring](std::uint64_t value) {
      return in_ring ? std::to_string(value) : std::string("-");
    };
    const std::string event = record.event == frame::TraceEvent::dropped
                                  ? fmt::format("dropped {}", weir::name_of(record.drop))
                                  : std::string(name_of(record.event));
    table.rows.push_back(
        {static_cast<double>(record.now_ns - start) / 1000.0, names.of_ingress(record),
         std::string(stage::row_of(stage::stage_of(record)).name), event,
         names.of_all(record.egress), ring_cell(in_ring ? set->rings()[record.ring].spec().id : 0),
         ring_cell(record.child), ring_cell(record.message), ring_cell(record.packet),
         std::uint64_t{record.qp}, std::uint64_t{record.psn}, std::uint64_t{record.length}});
  }
  return {table};
}

} // namespace weir::report
