// SPDX-License-Identifier: BSD-3-Clause
#include "coverage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace weir::fabric {
namespace {

#define WEIR_FABRIC_TEXT(name, text) text,
constexpr std::array<std::string_view, kRows> kRowTexts{WEIR_FABRIC_ROWS(WEIR_FABRIC_TEXT)};
#undef WEIR_FABRIC_TEXT

#define WEIR_FABRIC_TEXT(name, text) text,
constexpr std::array<std::string_view, kCallEvents> kCallEventTexts{
    WEIR_FABRIC_CALL_EVENTS(WEIR_FABRIC_TEXT)};
#undef WEIR_FABRIC_TEXT

#define WEIR_FABRIC_NAME(name) #name,
constexpr std::array<std::string_view, kHappenings> kHappeningNames{
    WEIR_FABRIC_EVENTS(WEIR_FABRIC_NAME)};
#undef WEIR_FABRIC_NAME

bool is_expected(std::size_t reason) {
  return why_unreachable(static_cast<DropReason>(reason)).empty();
}

std::string line(std::string_view text, std::uint64_t times) {
  return fmt::format("  {:>12}  {}{}\n", times, text, times == 0 ? "   <- NEVER" : "");
}

} // namespace

std::string_view why_unreachable(DropReason reason) {
  switch (reason) {
  case DropReason::not_contiguous:
  case DropReason::worker_queue_full:
  case DropReason::tx_queue_full:
  case DropReason::tx_backlog_full:
  case DropReason::ring_tx_queue_full:
  case DropReason::ring_tx_backlog_full:
  case DropReason::port_closed:
    return "lcores and mbufs alone drop for it";
  case DropReason::ring_queue_full:
  case DropReason::tenant_rate:
    return "no frame waits for a worker that is as fast as this one";
  case DropReason::no_egress:
    return "takes a switch with a single port";
  case DropReason::not_bridged:
  case DropReason::tied_elsewhere:
  case DropReason::loop_probe:
    return "all ports bridge, no station is tied, and no control sends probes";
  case DropReason::connection_table_full:
    return "there is room for 2H connections of each ring, of which at most H are its ring's and "
           "all others may be forgotten";
  case DropReason::operator_tables_differ:
  case DropReason::operator_disagrees:
    return "all hosts and switches have the right operators (by_operator_test)";
  case DropReason::disagree_payload:
    return "equal shapes and packet numbers have equal payloads, which classification has checked";
  case DropReason::region_impostor:
  case DropReason::region_unknown:
  case DropReason::region_elsewhere:
  case DropReason::region_early:
  case DropReason::region_gap:
  case DropReason::region_repeat:
  case DropReason::region_window:
  case DropReason::region_request:
  case DropReason::region_key:
  case DropReason::region_ghost:
  case DropReason::region_response:
  case DropReason::region_ended:
  case DropReason::region_queue_full:
    return "there are no regions (region_test)";
  default:
    return {};
  }
}

void Coverage::hit(const CallPlan& finished) {
  const host::Call& call = finished.call;
  hit(CallEvent::finished, call.kind);
  if (call.kind == host::CallKind::barrier) {
    return;
  }
  const auto hit_if = [&](bool holds, Row row) {
    if (holds) {
      hit(row);
    }
  };
  hit_if(finished.buffers == Buffers::out_of_place, Row::call_out_of_place);
  hit_if(!finished.parts.empty(), Row::call_of_list);
  hit_if(call.count == 0, Row::call_empty);
  hit_if(call.root != 0, Row::call_root);
  if (call.type == kAsOperator) {
    return hit(Row::call_by_operator);
  }
  types_[static_cast<std::size_t>(call.type)] += call.count != 0 ? 1 : 0;
  if (call.reduces()) {
    operations_[static_cast<std::size_t>(call.operation)] += call.count != 0 ? 1 : 0;
  }
}

void Coverage::add(const frame::FrameCounters& counters) {
  counters_ += counters;
}

Coverage& Coverage::operator+=(const Coverage& other) {
  const auto add_up = [](auto& sums, const auto& more) {
    std::transform(sums.begin(), sums.end(), more.begin(), sums.begin(), std::plus<>());
  };
  add_up(rows_, other.rows_);
  for (std::size_t event = 0; event < kCallEvents; ++event) {
    add_up(calls_[event], other.calls_[event]);
  }
  add_up(types_, other.types_);
  add_up(operations_, other.operations_);
  add_up(faults_, other.faults_);
  add_up(happenings_, other.happenings_);
  counters_ += other.counters_;
  return *this;
}

std::vector<Coverage::Line> Coverage::required() const {
  std::vector<Line> lines;
  for (std::size_t row = 0; row < kRows; ++row) {
    lines.push_back({std::string(kRowTexts[row]), rows_[row]});
  }
  for (std::size_t event = 0; event < kCallEvents; ++event) {
    for (const host::CallKind kind : host::kDenseCalls) {
      lines.push_back({fmt::format("{}: {}", name_of(kind), kCallEventTexts[event]),
                       calls_[event][static_cast<std::size_t>(kind)]});
    }
  }
  for (std::size_t type = 0; type < kDataTypes; ++type) {
    lines.push_back(
        {fmt::format("call finished, of {}", name_of(static_cast<DataType>(type))), types_[type]});
  }
  for (std::size_t operation = 0; operation < kOperations; ++operation) {
    lines.push_back(
        {fmt::format("call finished, by {}", name_of(static_cast<Operation>(operation))),
         operations_[operation]});
  }
  for (std::size_t reason = 0; reason < kDropReasons; ++reason) {
    if (is_expected(reason)) {
      lines.push_back({fmt::format("drop: {}", name_of(static_cast<DropReason>(reason))),
                       counters_.dropped[reason]});
    }
  }
  for (std::size_t reason = 0; reason < kForeignReasons; ++reason) {
    lines.push_back({fmt::format("foreign: {}", name_of(static_cast<ForeignReason>(reason))),
                     counters_.foreign[reason]});
  }
  return lines;
}

std::string Coverage::table() const {
  std::string text = "coverage\n";
  for (const Line& required : required()) {
    text += line(required.text, required.times);
  }
  for (std::size_t reason = 0; reason < kDropReasons; ++reason) {
    if (!is_expected(reason)) {
      text += fmt::format("  {:>12}  drop: {}: {}\n", counters_.dropped[reason],
                          name_of(static_cast<DropReason>(reason)),
                          why_unreachable(static_cast<DropReason>(reason)));
    }
  }
  return text;
}

std::string Coverage::statistics() const {
  std::string text = "faults and what else happened\n";
  for (std::size_t fault = 0; fault < kFaultKinds; ++fault) {
    text += line(name_of(static_cast<FaultKind>(fault)), faults_[fault]);
  }
  for (std::size_t happening = 0; happening < kHappenings; ++happening) {
    text += line(kHappeningNames[happening], happenings_[happening]);
  }
  text += line("frames through the switch", counters_.received);
  return text;
}

} // namespace weir::fabric
