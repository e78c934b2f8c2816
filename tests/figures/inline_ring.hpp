// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// A ring of hosts at the switch that ships (stage::InlineSwitch), packet by packet.

#include "stage/inline_switch.hpp"
#include "support/frame_pool.hpp"
#include "support/ring_job.hpp"

#include <cstdint>
#include <vector>

namespace weir::figures {

class InlineRing {
 public:
  /// A ring of `world` members, each behind a port of its own, that have said hello.
  explicit InlineRing(std::uint16_t world);

  /// After the hello, which is message 0.
  static constexpr std::uint32_t kFirstMessage = 1;

  /// The packets of the rank's next message, each 32-bit element rank + 1.
  std::vector<test::Built> message(std::uint16_t rank, std::uint32_t id);

  /// What leaves the switch when the rank's frame has come.
  std::vector<test::Sent> send(const test::Built& frame, std::uint16_t rank);

  /// What must leave for a member's frame: the sum over all ranks.
  test::Bytes sum_for(const test::Built& frame) const;

 private:
  test::RingJob job_;
  test::FramePool pool_;
  test::RecordingSink sink_;
  stage::InlineSwitch switch_;
};

} // namespace weir::figures
