// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/error.hpp"
#include "host/collective/engine.hpp"
#include "host/collective/operator_reduce.hpp"
#include "host/collective/sparse_all_reduce.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace weir::host {

class GroupDriver;

/// Called once a request is done, with the Error that ended it, if one did. Must not throw.
using DoneCallback = std::function<void(const std::optional<Error>&)>;

/// One call: its job, and the driver, which lives as long as the request.
struct Request {
  std::shared_ptr<GroupDriver> driver;
  Job job;
  std::optional<TensorList> tensors; // of a call with several
  std::optional<SparseAllReduce> sparse;
  std::optional<OperatorReduce> by_operator;
  std::vector<std::uint8_t>
      scaled; // the input, of a call that multiplies or packs it and has no other place
  std::vector<std::uint8_t> copy;         // in place of the buffers, of a call that is cancelled
  std::atomic<bool> is_cancelled = false; // over for its caller, whatever becomes of the call
  bool is_counted = false;                // by the group's DoneEvent
  bool is_seen = false;                   // its caller knows that it is done, or is called
  DoneCallback on_done;                   // until it has been called
  bool has_callback = false;
  bool is_due = false; // its callback is called, or soon
};

} // namespace weir::host
