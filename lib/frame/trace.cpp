// SPDX-License-Identifier: BSD-3-Clause
#include "frame/trace.hpp"

#include <algorithm>

namespace weir::frame {

void Trace::switch_on() {
  std::vector<TraceRecord> records(kRecords);
  switch_on(records);
}

void Trace::switch_on(std::vector<TraceRecord>& records) {
  records_.swap(records);
  next_ = 0;
  on_ = true;
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
