// SPDX-License-Identifier: BSD-3-Clause
#include "frame/trace.hpp"

#include "frame/capture_tap.hpp"

#include <algorithm>
#include <utility>

namespace weir::frame {

std::string_view name_of(TraceEvent event) {
  switch (event) {
  case TraceEvent::forwarded:
    return "forwarded";
  case TraceEvent::waits:
    return "waits";
  case TraceEvent::climbs:
    return "climbs";
  case TraceEvent::begins:
    return "begins";
  case TraceEvent::held:
    return "held";
  case TraceEvent::completed:
    return "completed";
  case TraceEvent::partial_sum:
    return "partial sum";
  case TraceEvent::total:
    return "total";
  case TraceEvent::result:
    return "result";
  case TraceEvent::repeated:
    return "repeated";
  case TraceEvent::cached_result:
    return "cached result";
  case TraceEvent::acknowledged:
    return "acknowledged";
  case TraceEvent::asked:
    return "asked";
  case TraceEvent::told:
    return "told";
  case TraceEvent::resent:
    return "resent";
  case TraceEvent::dropped:
    return "dropped";
  }
  return "unknown";
}

void Trace::switch_on() {
  records_.assign(kRecords, {});
  next_ = 0;
  is_on_ = keeps_ = true;
}

void Trace::switch_on_with(Trace& fresh) {
  hand_over_to(fresh);
  is_on_ = keeps_ = true;
}

void Trace::switch_off() {
  keeps_ = false;
  is_on_ = tap_ != nullptr;
}

void Trace::copy_to(CaptureTap* tap) {
  tap_ = tap;
  is_on_ = keeps_ || tap_ != nullptr;
}

void Trace::write_down(const Frame& frame, const TraceRecord& record) {
  if (keeps_) {
    add(record);
  }
  if (tap_ != nullptr) {
    tap_->take(frame, record);
  }
}

void Trace::hand_over_to(Trace& fresh) {
  std::swap(records_, fresh.records_);
  std::swap(next_, fresh.next_);
}

std::vector<TraceRecord> Trace::snapshot() const {
  std::vector<TraceRecord> copy;
  const std::uint64_t kept = std::min<std::uint64_t>(next_, kRecords);
  copy.reserve(kept);
  for (std::uint64_t i = next_ - kept; i < next_; ++i) {
    copy.push_back(records_[i % kRecords]);
  }
  return copy;
}

} // namespace weir::frame
