// SPDX-License-Identifier: BSD-3-Clause
#include "report/reclaims.hpp"

#include "report/answers.hpp"
#include "report/table_shapes.hpp"
#include "text/number.hpp"

#include <fmt/format.h>

#include <ctime>
#include <string>

namespace weir::report {
namespace {

constexpr std::uint64_t kNsPerS = 1'000'000'000;

std::chrono::seconds quiet_of(std::string_view typed) {
  if (typed.empty()) {
    return control::kDefaultQuiet;
  }
  const auto seconds = text::parsed<std::uint32_t>(typed);
  if (!seconds || !control::is_allowed_quiet(std::chrono::seconds(*seconds))) {
    throw UnknownName(
        fmt::format("seconds: found '{}'; allowed: {}", typed, control::kAllowedQuiet));
  }
  return std::chrono::seconds(*seconds);
}

/// ISO 8601, in UTC.
std::string time_text(std::uint64_t time_ns) {
  const auto time = static_cast<std::time_t>(time_ns / kNsPerS);
  std::tm parts{};
  gmtime_r(&time, &parts);
  char text[sizeof "2026-01-01T00:00:00Z"];
  return {text, std::strftime(text, sizeof text, "%FT%TZ", &parts)};
}

Table reclaimed_table(const control::ReclaimLog& log) {
  Table table(tables::kReclaimed);
  for (const control::Reclaimed& reclaimed : log.last()) {
    table.rows.push_back({std::uint64_t{reclaimed.ring}, time_text(reclaimed.time_ns),
                          std::string(name_of(reclaimed.grounds.reason)),
                          reclaimed.grounds.silence_ns / kNsPerS, reclaimed.frames,
                          std::string(name_of(reclaimed.fate))});
  }
  return table;
}

/// Every reason, also one that has not counted: a reader need not know the list.
Table reclaims_table(const control::ReclaimLog::Counts& counts) {
  Table table(tables::kReclaims);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto reason = static_cast<control::ReclaimReason>(i);
    table.rows.push_back({std::string(name_of(reason)), counts[i], std::string(text_of(reason))});
  }
  return table;
}

} // namespace

std::chrono::seconds drain_ring(control::Switch& weir, std::string_view ring,
                                std::string_view seconds, const control::Principal& principal) {
  const std::uint32_t id = ring_id(weir, ring);
  const std::chrono::seconds quiet = quiet_of(seconds);
  weir.rings().drain(id, quiet, principal);
  return quiet;
}

Report show_reclaimed(control::Switch& weir) {
  return {reclaimed_table(weir.rings().reclaim_log()),
          reclaims_table(weir.rings().reclaim_log().counts())};
}

} // namespace weir::report
