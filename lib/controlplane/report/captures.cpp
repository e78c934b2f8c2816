// SPDX-License-Identifier: BSD-3-Clause
#include "report/captures.hpp"

#include "capture/filter.hpp"
#include "control/switch.hpp"
#include "report/answers.hpp"
#include "text/number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace weir::report {
namespace {

std::uint64_t count_of(std::string_view typed) {
  if (typed.empty()) {
    return kCaptureCount;
  }
  const auto count = text::parsed<std::uint64_t>(typed);
  if (!count || *count == 0 || *count > kMostCaptureCount) {
    throw UnknownName(fmt::format("count: found '{}'; allowed: 1 .. {}", typed, kMostCaptureCount));
  }
  return *count;
}

void start(control::Switch& weir, std::string what, frame::CaptureFilter filter,
           const CaptureTarget& target) {
  weir.captures().start({.file = std::string(target.file),
                         .what = std::move(what),
                         .filter = std::move(filter),
                         .count = count_of(target.count)});
}

stage::ConnectionSnapshot connection_named(control::Switch& weir, std::string_view name) {
  const auto colon = std::min(name.find(':'), name.size());
  const auto pair = text::parsed<std::uint16_t>(name.substr(0, colon));
  const auto qp = text::parsed<std::uint32_t>(name.substr(std::min(colon + 1, name.size())));
  for (const stage::ConnectionSnapshot& row : weir.inspector().connections()) {
    if (pair == row.connection.pair && qp == row.connection.qp) {
      return row;
    }
  }
  throw UnknownName(fmt::format(
      "conn: found '{}'; allowed: pair and queue pair of a row of `show conn all`, such as 1:17",
      name));
}

/// The queue pair of the connection's source, if its hello has told it.
std::optional<std::uint32_t> own_qp_of(control::Switch& weir,
                                       const stage::ConnectionSnapshot& row) {
  if (row.connection.state != conn::ConnectionState::live || !row.ring_id) {
    return std::nullopt;
  }
  const std::uint32_t qp = weir.inspector().senders(*row.ring_id)[row.connection.child].flow.own_qp;
  return qp == 0 ? std::nullopt : std::optional(qp);
}

} // namespace

void capture_ring(control::Switch& weir, std::string_view name, const CaptureTarget& target) {
  const std::uint32_t id = ring_id(weir, name);
  const auto set = weir.inspector().ring_set();
  const auto ring = set->ring_with_id(id);
  if (!ring) { // withdrawn meanwhile
    throw UnknownName(fmt::format("ring: {} was just withdrawn", id));
  }
  start(weir, fmt::format("ring {}", name), capture::of_ring(set->rings()[*ring], *ring), target);
}

void capture_connection(control::Switch& weir, std::string_view name, const CaptureTarget& target) {
  const stage::ConnectionSnapshot row = connection_named(weir, name);
  const auto set = weir.inspector().ring_set();
  start(weir, fmt::format("conn {}", name),
        capture::of_connection({.source = set->source_of(row.connection.pair),
                                .destination = set->destination_of(row.connection.pair),
                                .qp = row.connection.qp,
                                .own_qp = own_qp_of(weir, row)}),
        target);
}

void capture_ports(control::Switch& weir, std::string_view name, const CaptureTarget& target) {
  frame::CaptureFilter filter;
  if (name != kAll) {
    filter.ports = l2::set_of(port_named(weir, name));
  }
  start(weir, fmt::format("port {}", name), std::move(filter), target);
}

} // namespace weir::report
