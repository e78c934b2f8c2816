// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The output arbiters of AllReduce-Switch (TCAS-I 2021, §IV-D2 and §IV-E): which frame leaves
/// next.

#include <cstdint>
#include <vector>

namespace weir::figures {

/// Weighted round robin over queues of frames of one length. A queue with weight w has w chances
/// per turn, spread evenly over the turn.
class OutputArbiter {
 public:
  explicit OutputArbiter(const std::vector<std::uint32_t>& weights);

  /// The queue that sends now, of those with a frame; the number of queues when none has one.
  std::size_t next(const std::vector<bool>& has_frame);

 private:
  std::size_t queues_;
  std::vector<std::size_t> turn_; // queues in the order of their chances
  std::size_t at_ = 0;
};

} // namespace weir::figures
