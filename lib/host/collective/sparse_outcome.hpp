// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/error.hpp"
#include "host/collective/sparse_choice.hpp"

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

namespace weir::host {

/// What a sparse all-reduce makes, the same on all ranks.
struct SparseResult {
  std::vector<std::int64_t> indices; // of blocks; they ascend
  std::vector<std::uint8_t> values;  // whole blocks; 0 behind the tensor's end
  std::uint64_t block = 1;           // elements of a block
  SparseForm form = SparseForm::one_level;
  std::uint64_t exchanged_bytes = 0; // of data, up and down this rank's link
};

/// How a sparse all-reduce ended. It may outlive the call, and keeps nothing of its input. One
/// thread at a time ends the call; any thread may look.
class SparseOutcome {
 public:
  /// Null while the call is under way. Throws the Error that ended it.
  const SparseResult* find() const;

  /// True if the call ended well.
  bool is_done() const { return state_.load(std::memory_order_acquire) == State::done; }

  /// Of a call that is done.
  const SparseResult& result() const { return result_; }

  void set(SparseResult result);
  /// Changes nothing once the call is done.
  void fail(const Error& error);

 private:
  enum class State : std::uint8_t { under_way, done, failed };

  SparseResult result_;
  std::optional<Error> error_;
  std::atomic<State> state_ = State::under_way; // written last
};

} // namespace weir::host
