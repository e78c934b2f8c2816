// SPDX-License-Identifier: BSD-3-Clause
#include "report/answers.hpp"

#include "control/switch.hpp"
#include "frame/frame.hpp"
#include "lcore/clock.hpp"
#include "report/switch_tables.hpp"
#include "text/number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

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

Table tree_table(const ring::Ring& ring, const PortNames& names) {
  Table table(tables::kTree);
  for (std::uint16_t sender = 0; sender < ring.senders(); ++sender) {
    const std::optional<std::uint16_t> port = ring.port_of(sender);
    tables::kTree.add(table, {ring, sender, port ? names.of(*port) : std::string()});
  }
  return table;
}

/// Of one ring, or of all, those that are not here included.
Table refused_table(const control::Switch& weir, const ring::RingSet& set, const PortNames& names,
                    std::optional<std::uint32_t> ring) {
  Table table(tables::kRefusedHellos);
  const auto name_of_port = [&names](std::uint16_t port) { return names.of(port); };
  const std::uint64_t now_ns = lcore::Clock().now().ns;
  for (const conn::RefusedHello& hello : weir.inspector().refused_hellos()) {
    if (ring && hello.header.ring_id.get() != *ring) {
      continue;
    }
    const conn::ToldHello told = conn::tell(hello, set, name_of_port);
    for (const conn::HelloDifference& difference : told.differences) {
      tables::kRefusedHellos.add(table, {hello, told, difference, names.of(hello.port), now_ns});
    }
  }
  return table;
}

/// Whether another switch says hello for this ring, which is not here.
bool has_hellos(const control::Switch& weir, std::uint32_t ring) {
  return std::ranges::any_of(
      weir.inspector().refused_hellos(),
      [ring](const conn::RefusedHello& hello) { return hello.header.ring_id.get() == ring; });
}

/// At each worker each group counts once, however many of the tenant's rings are in it. `number`:
/// the tenant's.
stage::LineSnapshot lines_of(const control::TenantUse& use, std::uint16_t number,
                             const control::RingsSeen& seen) {
  const auto regions = seen.of_regions.find(number);
  stage::LineSnapshot sum =
      regions == seen.of_regions.end() ? stage::LineSnapshot{} : regions->second;
  std::set<std::pair<unsigned, std::uint16_t>> counted; // lcore and group
  for (const stage::RingSnapshot& ring : seen.rings) {
    if (std::ranges::count(use.rings, ring.ring) != 0 &&
        counted.emplace(ring.lcore, seen.set->ring_group_of(ring.ring)).second) {
      sum += ring.line;
    }
  }
  return sum;
}

std::string_view text_of(control::GateProcess process) {
  return process == control::GateProcess::connection
             ? "a signal has ended a client's process: it took more memory than it may, or a fault"
             : "the process that accepts has ended, and was started again";
}

Report changes_report(const std::vector<config::Change>& changes, std::string note) {
  Table table = tables::kChanges.with_all(changes);
  table.note = std::move(note);
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
  const bool is_known_elsewhere = id && has_hellos(weir, *id);
  throw UnknownName(fmt::format(
      "ring: found '{}'; allowed: {}{}", name, ids.empty() ? "there is none" : ids,
      is_known_elsewhere ? "; another switch says hello for it here: see `show hellos`" : ""));
}

std::uint16_t port_named(const control::Switch& weir, std::string_view name) {
  return place_named(weir.inspector().ports(), name);
}

Report show_port_information(control::Switch& weir, std::string_view name) {
  Table table(tables::kPortInfo);
  for_ports(weir, name, [&](std::uint16_t, const control::Port& port) {
    tables::kPortInfo.add(table, {port, port.information()});
  });
  return {table};
}

Report show_port_steering(control::Switch& weir, std::string_view name) {
  Table table(tables::kPortSteering);
  for_ports(weir, name, [&](std::uint16_t, const control::Port& port) {
    tables::kPortSteering.add(table, {port, port.steering().value_or(control::SteeringState{})});
  });
  return {table};
}

Report show_port_bridge(control::Switch& weir, std::string_view name) {
  Table table(tables::kPortBridge);
  const PortNames names(weir);
  const auto config = weir.inspector().config();
  for_ports(weir, name, [&](std::uint16_t place, const control::Port& port) {
    const control::PortLoops loops = weir.inspector().loops(place);
    const config::YesNo bridge =
        place < config->ports.size() ? config->ports[place].bridge : port.config().bridge;
    tables::kPortBridge.add(table, {port, bridge, loops,
                                    loops.closed_until_ns == 0 ? "-" : names.of(loops.other),
                                    lcore::Clock().now().ns});
  });
  return {table};
}

Report show_port_statistics(control::Switch& weir, std::string_view name) {
  Table table(tables::kPortStats);
  for_ports(weir, name, [&](std::uint16_t place, const control::Port& port) {
    tables::kPortStats.add(table, {port, weir.inspector().port_counters(place), port.losses()});
  });
  return {table};
}

Report show_port_extended(control::Switch& weir, std::string_view name) {
  Table table(tables::kPortXstats);
  for_ports(weir, name, [&](std::uint16_t, const control::Port& port) {
    for (const auto& [statistic, value] : port.extended_statistics()) {
      tables::kPortXstats.add(table, {port, statistic, value});
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
  const RingRow ring{seen.set->rings()[snapshot.ring], snapshot};
  const std::vector<RankRow> ranks = ranks_of(ring);
  Report report{tables::kRings.with(ring),
                tables::kMembers.with_all(ranks),
                tables::kRecovery.with_all(ranks),
                ring_drops_table(snapshot),
                histogram_table(tables::kSlotTime, snapshot.counters.slot_time_ns),
                tables::kRingQueue.with(ring)};
  if (ring.of.is_in_tree()) {
    const PortNames names(weir);
    report.push_back(tree_table(ring.of, names));
    report.push_back(refused_table(weir, *seen.set, names, ring.of.spec().id));
  }
  if (!ring.of.is_root()) {
    report.push_back(tables::kUplink.with(ring));
    report.push_back(histogram_table(tables::kTotalTime, snapshot.counters.total_time_ns));
  }
  return report;
}

Report show_hellos(control::Switch& weir) {
  return {refused_table(weir, *weir.inspector().ring_set(), PortNames(weir), {})};
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

Report show_drops(control::Switch& weir) {
  const stage::Accounting accounting = weir.inspector().accounting();
  return {drops_table(accounting.frames), foreign_table(accounting.frames)};
}

Report show_graph(control::Switch& weir) {
  return {graph_table(weir.inspector().accounting().frames)};
}

Report show_accounting(control::Switch& weir) {
  return {tables::kAccounting.with(weir.inspector().accounting())};
}

Report show_stations(control::Switch& weir) {
  Table table(tables::kFdb);
  const PortNames names(weir);
  for (const control::Station& station : weir.inspector().stations()) {
    tables::kFdb.add(table, {station, names.of(station.port)});
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
  return {tables::kLcores.with_all(lcores), histogram_table(tables::kRxBurst, bursts),
          histogram_table(tables::kStoodStill, stood_still)};
}

Report show_memory(control::Switch& weir) {
  const control::MemoryPlan& plan = weir.inspector().memory_plan();
  Table table = tables::kMemory.with({plan, weir.inspector().free_mbufs()});
  table.note = plan.explanation;
  return {table};
}

namespace {

/// The ring may have come after the record, to the index of a larger one.
TraceRow::Place place_of(const frame::TraceRecord& record, const ring::RingSet& set) {
  if (!names_a_slot(record.event)) {
    return {};
  }
  const ring::Ring& ring = set.rings()[record.ring];
  return {ring.spec().id, record.child < ring.senders() ? name_of(ring, record.child)
                                                        : std::to_string(record.child)};
}

} // namespace

Report show_trace(control::Switch& weir) {
  Table table(tables::kTrace);
  const auto records = weir.traces().records();
  const auto set = weir.inspector().ring_set();
  const PortNames names(weir);
  for (const frame::TraceRecord& record : records) {
    tables::kTrace.add(table, {record, records.front().now_ns, names.of_ingress(record),
                               names.of_all(record.egress), place_of(record, *set)});
  }
  return {table};
}

Report show_tenants(control::Switch& weir, std::string_view, const control::Principal& principal) {
  const control::RingsSeen seen = weir.inspector().rings();
  Table table(tables::kTenants);
  const control::Tenants& tenants = weir.inspector().tenants();
  for (const control::TenantUse& use : tenants.uses(*seen.set)) {
    tables::kTenants.add(table, {use, lines_of(use, tenants.number_of(use.tenant.name), seen)});
  }
  return {table, tables::kTenantRegions.with_all(weir.regions().shares(principal))};
}

std::vector<std::string> region_ids(const control::Switch& weir,
                                    const control::Principal& principal) {
  std::vector<std::string> ids;
  for (const control::RegionSeen& region : weir.regions().regions(principal)) {
    ids.push_back(std::to_string(region.spec.id));
  }
  return ids;
}

namespace {

/// Of the reasons that have counted.
Table ends_table(const control::RegionEnds& ends) {
  Table table(tables::kRegionEnds);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const auto why = static_cast<region::End>(i);
    if (ends[i] != 0) {
      tables::kRegionEnds.add(table, {control::name_of(why), ends[i], control::text_of(why)});
    }
  }
  return table;
}

[[noreturn]] void refuse_region(std::string_view name, const std::vector<std::string>& ids) {
  throw UnknownName(
      fmt::format("region: found '{}'; allowed: {}", name,
                  ids.empty() ? "there is none" : fmt::format("{}", fmt::join(ids, ", "))));
}

} // namespace

Report show_regions(control::Switch& weir, std::string_view name,
                    const control::Principal& principal) {
  Table regions(tables::kRegions);
  Table members(tables::kRegionMembers);
  Table lines(tables::kRegionQueue);
  std::vector<std::string> ids;
  for (const control::RegionSeen& region : weir.regions().regions(principal)) {
    ids.push_back(std::to_string(region.spec.id));
    if (name != kAll && name != ids.back()) {
      continue;
    }
    tables::kRegions.add(regions, region);
    tables::kRegionQueue.add(lines, region);
    for (std::size_t member = 0; member < region.members.size(); ++member) {
      tables::kRegionMembers.add(members, {region, member});
    }
  }
  if (name != kAll && regions.rows.empty()) {
    refuse_region(name, ids);
  }
  if (name != kAll) {
    return {regions, members, lines};
  }
  return {regions, members, lines, ends_table(weir.regions().ends(principal))};
}

void withdraw_region(control::Switch& weir, std::string_view name,
                     const control::Principal& principal) {
  const auto id = text::parsed<std::uint32_t>(name);
  if (!id) {
    refuse_region(name, region_ids(weir, principal));
  }
  weir.regions().withdraw(*id, principal);
}

/// Both, also one that has not counted.
Report show_gate(control::Switch& weir) {
  Table table(tables::kGate);
  for (std::size_t i = 0; i < control::kGateProcesses; ++i) {
    const auto process = static_cast<control::GateProcess>(i);
    tables::kGate.add(
        table, {control::name_of(process), weir.gate_log().count(process), text_of(process)});
  }
  return {table};
}

/// Every reason, also one that has not counted: a reader need not know the list.
Report show_reclaimed(control::Switch& weir) {
  const control::ReclaimLog& log = weir.rings().reclaim_log();
  Table reclaims(tables::kReclaims);
  const control::ReclaimLog::Counts counts = log.counts();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto reason = static_cast<control::ReclaimReason>(i);
    tables::kReclaims.add(reclaims, {name_of(reason), counts[i], text_of(reason)});
  }
  return {tables::kReclaimed.with_all(log.last()), reclaims};
}

Report show_capture(control::Switch& weir) {
  const std::optional<capture::Status> last = weir.captures().last();
  return {last ? tables::kCapture.with(*last) : Table(tables::kCapture)};
}

} // namespace weir::report
