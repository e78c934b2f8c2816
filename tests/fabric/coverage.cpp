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
    return "lcores and mbufs alone drop for it";
  case DropReason::no_egress:
    return "takes a switch with a single port";
  case DropReason::connection_table_full:
    return "there is room for 2H connections of each ring, of which at most H are its ring's and "
           "all others may be forgotten";
  case DropReason::disagree_collective:
    return "a message 0 that is no hello conflicts with the hello in its connection's history";
  case DropReason::disagree_payload:
    return "equal shapes and packet numbers have equal payloads, which classification has checked";
  default:
    return {};
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
  add_up(faults_, other.faults_);
  add_up(happenings_, other.happenings_);
  counters_ += other.counters_;
  return *this;
}

std::size_t Coverage::expected() {
  std::size_t reasons = 0;
  for (std::size_t reason = 0; reason < kDropReasons; ++reason) {
    reasons += is_expected(reason) ? 1 : 0;
  }
  return kRows + reasons + kForeignReasons;
}

std::size_t Coverage::missing() const {
  auto missing =
      static_cast<std::size_t>(std::count(rows_.begin(), rows_.end(), 0u) +
                               std::count(counters_.foreign.begin(), counters_.foreign.end(), 0u));
  for (std::size_t reason = 0; reason < kDropReasons; ++reason) {
    missing += is_expected(reason) && counters_.dropped[reason] == 0 ? 1 : 0;
  }
  return missing;
}

std::string Coverage::table() const {
  std::string text = "coverage\n";
  for (std::size_t row = 0; row < kRows; ++row) {
    text += line(kRowTexts[row], rows_[row]);
  }
  for (std::size_t reason = 0; reason < kDropReasons; ++reason) {
    if (is_expected(reason)) {
      text += line(fmt::format("drop: {}", name_of(static_cast<DropReason>(reason))),
                   counters_.dropped[reason]);
    }
  }
  for (std::size_t reason = 0; reason < kForeignReasons; ++reason) {
    text += line(fmt::format("foreign: {}", name_of(static_cast<ForeignReason>(reason))),
                 counters_.foreign[reason]);
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
