// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/collective/ring_reducer.hpp"

#include <vector>

namespace weir::host {

/// Every call without a switch, as an all-reduce of the hosts. Where a rank keeps only a part of
/// the result, the whole is made in a buffer of our own. A broadcast is the OR of the root's bytes
/// and of zeros, and an all-gather the OR of all ranks' bytes, each in its place. A barrier is the
/// OR of a byte. That costs up to twice the bytes of the best schedule; it is for networks without
/// a switch.
class RingCollectives : public Reducer {
 public:
  explicit RingCollectives(const RingReducerConfig& config) : reducer_(config) {}

  void begin(const Slice& slice) override;

  std::optional<OutgoingMessage> next() override { return reducer_.next(); }

  void accept(std::uint32_t immediate, std::span<const std::uint8_t> message) override;
  void complete() override;

  std::size_t bytes_done() const override { return reducer_.bytes_done(); }

  bool is_idle() const override { return reducer_.is_idle(); }

  std::string describe() const override { return reducer_.describe(); }

 private:
  void begin_reduction();
  void begin_gathering();
  void deliver_if_done();

  RingReducer reducer_;
  Slice slice_;
  std::vector<std::uint8_t> whole_; // the result, when `out` has no room for it; else empty
};

} // namespace weir::host
