// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/call.hpp"
#include "host/collective/slice.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace weir::app {

enum class Placement : std::uint8_t { in_place, out_of_place };

/// Whether the device knows the tensors' memory, or messages are copied to and from it.
enum class Registration : std::uint8_t { none, tensors };

/// "in-place", "out-of-place".
std::string_view name_of(Placement placement);

/// False for a broadcast, which has one buffer, and a barrier, which has none. Both count as in
/// place.
bool can_be_out_of_place(const host::Call& call);

/// Bytes of a call's longer buffer, as nccl-tests count them: the tensor of an all-reduce, reduce
/// or broadcast, the result of an all-gather, the input of a reduce-scatter. 0 for a barrier.
std::uint64_t bytes_of(const host::Call& call, std::uint16_t world);

/// One rank's buffers in a call.
struct CallBuffers {
  std::span<std::byte> input;  // what this rank brings
  std::span<std::byte> result; // what it gets; empty in a barrier, and in a reduce to another rank
};

/// Memory for one call at a time, allocated and touched once.
class TensorMemory {
 public:
  /// Enough for each of `calls` with each of `placements`. Throws std::runtime_error, with the
  /// bytes that cannot be had.
  TensorMemory(std::span<const host::Call> calls, std::span<const Placement> placements,
               const host::Place& place);

  CallBuffers buffers_of(const host::Call& call, Placement placement);

  /// All of it, for a device that shall know it. Either may be empty.
  std::array<std::span<std::byte>, 2> parts() { return {whole_, other_}; }

 private:
  host::Place place_;
  std::vector<std::byte> whole_;
  std::vector<std::byte> other_; // out of place: the input of an all-gather, else the result
};

} // namespace weir::app
