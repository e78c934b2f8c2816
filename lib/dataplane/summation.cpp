// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/summation.hpp"

#include "agg/slot_table.hpp"
#include "splice/splice.hpp"

namespace weir::dataplane {

void Summation::offer(const Task& task) {
  task_ = task;
  phase_.store(Phase::offered, std::memory_order_release);
}

bool Summation::make() {
  Phase expected = Phase::offered;
  if (!phase_.compare_exchange_strong(expected, Phase::taken, std::memory_order_acq_rel,
                                      std::memory_order_relaxed)) {
    return false;
  }
  const std::size_t skip = splice::ina_bytes(task_.frames.front()->packet);
  crc_ = agg::sum_frames(task_.frames, skip, task_.fold, task_.result);
  for (wire::Frame* frame : task_.frames) {
    splice::seal_result(*frame, {task_.result, crc_}, task_.session);
  }
  phase_.store(Phase::made, std::memory_order_release);
  return true;
}

} // namespace weir::dataplane
