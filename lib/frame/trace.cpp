// SPDX-License-Identifier: BSD-3-Clause
#include "frame/trace.hpp"

#include <algorithm>
#include <utility>

namespace weir::frame {

std::string_view name_of(TraceEvent event) {
  switch (event) {
  case TraceEvent::forwarded:
    return "forwarded";
  case TraceEvent::waits:
    return "waits";
  case TraceEvent::held:
    return "held";
  case TraceEvent::completed:
    return "completed";
  case TraceEvent::result:
    return "result";
  case TraceEvent::cached_result:
    return "cached result";
  case TraceEvent::acknowledged:
    return "acknowledged";
  case TraceEvent::asked:
    return "asked";
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
  on_ = true;
}

void Trace::hand_over_to(Trace& fresh) {
  fresh.on_ = on_;
  std::swap(*this, fresh);
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
