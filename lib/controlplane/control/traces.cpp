// SPDX-License-Identifier: BSD-3-Clause
#include "control/traces.hpp"

#include <algorithm>
#include <mutex>

namespace weir::control {

using lcore::Quiesce;

void Traces::switch_on() {
  const std::lock_guard lock(one_reader_);
  std::vector<frame::Trace> traces = empty_ones();
  taken_.assign(lcores_.size(), {});
  const Quiesce quiesced(lcores_);
  for (std::size_t i = 0; i < lcores_.size(); ++i) {
    lcores_[i].trace().switch_on_with(traces[i]);
  }
}

/// Allocated before the lcores stop.
std::vector<frame::Trace> Traces::empty_ones() const {
  std::vector<frame::Trace> traces(lcores_.size());
  for (frame::Trace& trace : traces) {
    trace.switch_on();
  }
  return traces;
}

void Traces::switch_off() {
  const Quiesce quiesced(lcores_);
  for (const auto& lcore : lcores_) {
    lcore->trace().switch_off();
  }
}

std::vector<frame::TraceRecord> Traces::records() {
  const std::lock_guard lock(one_reader_);
  std::vector<frame::Trace> traces = empty_ones();
  {
    const Quiesce quiesced(lcores_);
    for (std::size_t i = 0; i < lcores_.size(); ++i) {
      lcores_[i].trace().hand_over_to(traces[i]);
    }
  }
  std::vector<frame::TraceRecord> all;
  taken_.resize(lcores_.size());
  for (std::size_t i = 0; i < lcores_.size(); ++i) {
    const std::vector<frame::TraceRecord> newest = traces[i].snapshot();
    std::deque<frame::TraceRecord>& part = taken_[i];
    part.insert(part.end(), newest.begin(), newest.end());
    while (part.size() > frame::Trace::kRecords) {
      part.pop_front();
    }
    all.insert(all.end(), part.begin(), part.end());
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.now_ns < b.now_ns; });
  return all;
}

} // namespace weir::control
