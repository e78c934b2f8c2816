// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/collective/engine.hpp"
#include "host/collective/sparse_all_reduce.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace weir::host {

class GroupDriver;

/// One call: its job, and the driver, which lives as long as the request.
struct Request {
  std::shared_ptr<GroupDriver> driver;
  Job job;
  std::optional<TensorList> tensors; // of a call with several
  std::optional<SparseAllReduce> sparse;
  std::vector<std::uint8_t>
      scaled;              // the input, of a call that multiplies it and has no other place
  bool is_counted = false; // by the group's DoneEvent
  bool is_seen = false;    // its caller knows that it is done
};

} // namespace weir::host
