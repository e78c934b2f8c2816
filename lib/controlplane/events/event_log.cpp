// SPDX-License-Identifier: BSD-3-Clause
#include "events/event_log.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir::events {
namespace {

constexpr std::uint64_t kMostOfAKind = 100; // about whatever, of a tenant's or of nobody's

/// What is limited together: a kind, and the ring or port that it is about.
std::string subject_of(const Event& event) {
  const std::string_view kind = row_of(event.kind).name;
  if (event.fields.empty()) {
    return std::string(kind);
  }
  return fmt::format("{} {}={}", kind, event.fields[0].name, event.fields[0].value);
}

/// So what happens to one tenant's things hides nothing of another's.
std::string kind_and_tenant_of(const Event& event) {
  const auto tenant = std::ranges::find(event.fields, "tenant", &Field::name);
  return tenant == event.fields.end()
             ? fmt::format("{} of all", row_of(event.kind).name)
             : fmt::format("{} of tenant {}", row_of(event.kind).name, tenant->value);
}

} // namespace

void EventLog::write(const Event& event, LineLimit::Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  end_minutes(now);
  if (row_of(event.kind).pace == Pace::all || is_admitted(event, now)) {
    sink_->put(event);
  }
}

/// Rings come and go, so there may be any number of subjects of a kind.
bool EventLog::is_admitted(const Event& event, LineLimit::Clock::time_point now) {
  return limit_.admits(subject_of(event), kMostLines, now) &&
         limit_.admits(kind_and_tenant_of(event), kMostOfAKind, now);
}

void EventLog::tell_left_out(LineLimit::Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  end_minutes(now);
}

void EventLog::end_minutes(LineLimit::Clock::time_point now) {
  limit_.end_minutes(now, [this](const std::string& subject, std::uint64_t lines) {
    sink_->put({EventKind::lines_left_out,
                fmt::format("{} more lines of `{}` in a minute were left out", lines, subject),
                {{"lines", fmt::format("{}", lines)}}});
  });
}

} // namespace weir::events
