// SPDX-License-Identifier: BSD-3-Clause
#include "slot/reduction.hpp"

#include "slot/result_packet.hpp"
#include "slot/slot_table.hpp"

#include <algorithm>
#include <cassert>

namespace weir::slot {

void Reduction::offer(const Task& task) {
  assert(is_made());
  task_ = task;
  phase_.store(Phase::offered, std::memory_order_release);
}

bool Reduction::make() {
  Phase expected = Phase::offered;
  if (!phase_.compare_exchange_strong(expected, Phase::taken, std::memory_order_acq_rel,
                                      std::memory_order_relaxed)) {
    return false;
  }
  const std::size_t skip = ina_bytes(task_.frames.front()->packet);
  assert(std::ranges::all_of(task_.frames, [&](const frame::Frame* frame) {
    return frame->packet.payload_bytes == skip + task_.result.size();
  }));
  crc_ = fold_frames(task_.frames, skip, task_.fold, task_.result);
  for (frame::Frame* frame : task_.results) {
    seal_result(*frame, {task_.result, crc_}, task_.session);
  }
  phase_.store(Phase::made, std::memory_order_release);
  return true;
}

} // namespace weir::slot
