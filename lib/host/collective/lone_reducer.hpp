// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/collective/reducer.hpp"

#include <vector>

namespace weir::host {

/// Of a group of one rank: a reduction is the fold of its own elements alone, whatever else is a
/// copy. Nothing travels, so a slice is done when begin() returns. One channel has all of a call.
class LoneReducer : public Reducer {
 public:
  LoneReducer();

  void begin(const Slice& slice) override;

  std::optional<OutgoingMessage> next() override { return std::nullopt; }

  /// Throws Error: nobody sends.
  Arrival accept(const IncomingMessage& message) override;

  void complete() override {}

  std::uint64_t finished() const override { return finished_; }

  std::size_t bytes_done() const override { return 0; }

  bool is_idle() const override { return true; }

  std::string describe() const override { return "a group of one rank waits for nobody"; }

 private:
  void reduce(const Slice& slice, const std::uint8_t* in, std::uint8_t* out, std::size_t bytes);

  std::vector<std::byte> block_; // what a kernel writes that may not write to its input
  std::uint64_t finished_ = 0;
};

} // namespace weir::host
