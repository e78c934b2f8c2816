// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/collective/reducer.hpp"
#include "host/collective/ring_reducer.hpp"

#include <deque>
#include <vector>

namespace weir::host {

/// Every call without a switch, as an all-reduce of the hosts. Where a rank keeps only a part of
/// the result, or its tensors are several, the whole is made in a buffer of our own. A broadcast is
/// the OR of the root's bytes and of zeros, and an all-gather the OR of all ranks' bytes, each in
/// its place. A barrier is the OR of a byte. That costs up to twice the bytes of the best schedule;
/// it is for networks without a switch. A slice begins when the one before is finished.
class RingCollectives : public Reducer {
 public:
  explicit RingCollectives(const RingReducerConfig& config) : reducer_(config) {}

  void begin(const Slice& slice) override;

  bool has_begun(std::uint64_t number) const override { return number <= finished_; }

  void replace(std::uint64_t number, const Slice& slice) override {
    slices_[number - finished_] = slice;
  }

  std::optional<OutgoingMessage> next() override { return reducer_.next(); }

  Arrival accept(const IncomingMessage& message) override;
  void complete() override;

  std::uint64_t finished() const override { return finished_; }

  std::size_t bytes_done() const override { return slices_.empty() ? 0 : reducer_.bytes_done(); }

  bool is_idle() const override { return slices_.empty(); }

  std::string describe() const override { return reducer_.describe(); }

 private:
  void begin_first();
  void begin_reduction(const Slice& slice);
  void begin_gathering(const Slice& slice);
  void go_on();
  void deliver(const Slice& slice);

  RingReducer reducer_;
  std::deque<Slice> slices_; // the first has begun
  std::uint64_t finished_ = 0;
  std::vector<std::uint8_t> whole_; // the result, when `out` has no room for it; else empty
};

} // namespace weir::host
