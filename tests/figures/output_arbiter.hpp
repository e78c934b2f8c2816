// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The output arbiters of AllReduce-Switch (TCAS-I 2021, §IV-D2 and §IV-E): whose frame leaves
/// next.

#include <cstdint>
#include <vector>

namespace weir::figures {

/// Weighted round robin over queues of frames of one length: a queue with weight w is asked w times
/// a turn, and the askings of one queue are spread over the turn.
class OutputArbiter {
 public:
  explicit OutputArbiter(const std::vector<std::uint32_t>& weights);

  /// The queue that sends now, of those that have a frame; their number when none has.
  std::size_t next(const std::vector<bool>& has_frame);

 private:
  std::size_t queues_;
  std::vector<std::size_t> turn_; // queues in the order of asking
  std::size_t at_ = 0;
};

} // namespace weir::figures
