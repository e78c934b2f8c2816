// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// A ring of hosts at the real switch (stage::InlineSwitch), packet by packet.

#include "stage/inline_switch.hpp"
#include "support/frame_pool.hpp"
#include "support/ring_job.hpp"

#include <cstdint>
#include <vector>

namespace weir::figures {

class InlineRing {
 public:
  /// A ring of `world` members that have said hello, each behind a port of its own.
  explicit InlineRing(std::uint16_t world);

  /// The hello is message 0.
  static constexpr std::uint32_t kFirstMessage = 1;

  /// The packets of the rank's next message; each 32-bit element is rank + 1.
  std::vector<test::Built> message(std::uint16_t rank, std::uint32_t id);

  /// The frames that leave the switch after the rank's frame.
  std::vector<test::Sent> send(const test::Built& frame, std::uint16_t rank);

  /// The expected data for a member's frame: the sum over all ranks.
  test::Bytes sum_for(const test::Built& frame) const;

 private:
  test::RingJob job_;
  test::FramePool pool_;
  test::RecordingSink sink_;
  stage::InlineSwitch switch_;
};

} // namespace weir::figures
