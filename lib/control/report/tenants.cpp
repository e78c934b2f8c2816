// SPDX-License-Identifier: BSD-3-Clause
#include "report/tenants.hpp"

#include "report/table_shapes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

namespace weir::report {
namespace {

/// A limit, or that there is none.
template <typename Number>
Cell limit_cell(const std::optional<Number>& limit) {
  return limit ? Cell(std::uint64_t{*limit}) : Cell(std::string("-"));
}

/// Blocks of addresses, or that they may be anywhere.
std::string hosts_text(const config::TenantConfig& tenant) {
  return tenant.hosts.empty() ? "-" : fmt::format("{}", fmt::join(config::hosts_of(tenant), " "));
}

/// Each group counts once, however many of the tenant's rings are in it.
stage::LineSnapshot lines_of(const control::TenantUse& use, const control::RingsSeen& seen) {
  stage::LineSnapshot sum;
  std::set<std::uint16_t> counted;
  for (const stage::RingSnapshot& ring : seen.rings) {
    if (std::ranges::count(use.rings, ring.ring) != 0 &&
        counted.insert(seen.set->ring_group_of(ring.ring)).second) {
      sum.waiting += ring.line.waiting;
      sum.counters.waited += ring.line.counters.waited;
      sum.counters.queue_full += ring.line.counters.queue_full;
      sum.counters.over_rate += ring.line.counters.over_rate;
    }
  }
  return sum;
}

} // namespace

Report show_tenants(control::Switch& weir) {
  const control::RingsSeen seen = weir.inspector().rings();
  Table table(tables::kTenants);
  for (const control::TenantUse& use : weir.inspector().tenants().uses(*seen.set)) {
    const stage::LineSnapshot lines = lines_of(use, seen);
    table.rows.push_back(
        {use.tenant.name, std::uint64_t{use.rings.size()}, limit_cell(use.tenant.rings),
         static_cast<double>(use.bytes) / control::kMiB, limit_cell(use.tenant.memory_mib),
         std::uint64_t{use.neighbours}, limit_cell(use.tenant.neighbours),
         limit_cell(use.tenant.packets_per_second), lines.waiting, lines.counters.waited,
         lines.counters.queue_full, lines.counters.over_rate, hosts_text(use.tenant)});
  }
  return {table};
}

} // namespace weir::report
