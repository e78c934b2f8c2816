// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/bootstrap/call.hpp"
#include "host/collective/slice.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::app {

enum class Placement : std::uint8_t { in_place, out_of_place };

/// Into how many ranks' shares the longer buffer of a call is cut.
std::uint16_t shares_of(host::CallKind kind, std::uint16_t world);

/// One rank's buffers for a call. `whole` bytes are the tensor of an all-reduce, reduce or
/// broadcast, the result of an all-gather and the input of a reduce-scatter, as nccl-tests counts
/// them. A broadcast is always in place.
class CallBuffers {
 public:
  /// `call.count` is not looked at. Throws std::bad_alloc or std::length_error.
  CallBuffers(const host::Call& call, const host::Place& place, Placement placement,
              std::size_t whole);

  /// What this rank brings.
  std::span<std::byte> input() { return input_; }

  /// What it gets. Empty where it gets nothing: in a barrier, and in a reduce to another rank.
  std::span<std::byte> result() { return result_; }

 private:
  std::vector<std::byte> whole_;
  std::vector<std::byte> other_; // out of place: the input of an all-gather, else the result
  std::span<std::byte> input_;
  std::span<std::byte> result_;
};

} // namespace weir::app
