// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/collective/slice.hpp"
#include "host/collective/tensor_list.hpp"
#include "scenario.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::fabric {

/// A rank's memory for one call, as weir.h wants it: what the rank gives, and room for what it
/// gets, in place or apart. Bytes that nobody may write lie around every tensor.
class CallMemory {
 public:
  /// `given` is what the rank gives.
  CallMemory(const CallPlan& plan, const host::Place& place, std::span<const std::uint8_t> given);

  CallMemory(const CallMemory&) = delete;
  CallMemory& operator=(const CallMemory&) = delete;

  /// Valid as long as this object.
  host::CallBuffers buffers();

  /// Where the memory differs from what it must be when the rank has kept `result`, in words.
  /// nullopt: nowhere.
  std::optional<std::string> difference(std::span<const std::uint8_t> result) const;

 private:
  /// Of one tensor; places in memory_.
  struct Tensor {
    std::size_t in = 0;
    std::size_t in_bytes = 0;
    std::size_t out = 0;
    std::size_t out_bytes = 0;
  };

  void add_tensor(const CallPlan& plan, const host::Place& place, std::uint64_t elements);

  std::vector<Tensor> tensors_;
  std::size_t end_;
  std::vector<std::uint8_t> memory_;
  std::vector<std::uint8_t> before_; // the same, as it was at the beginning
  std::optional<host::TensorList> list_;
};

} // namespace weir::fabric
