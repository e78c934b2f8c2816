// SPDX-License-Identifier: BSD-3-Clause
#include "host/collective/sparse_outcome.hpp"

#include <utility>

namespace weir::host {

const SparseResult* SparseOutcome::find() const {
  switch (state_.load(std::memory_order_acquire)) {
  case State::under_way:
    break;
  case State::done:
    return &result_;
  case State::failed:
    throw *error_;
  }
  return nullptr;
}

void SparseOutcome::set(SparseResult result) {
  result_ = std::move(result);
  state_.store(State::done, std::memory_order_release);
}

void SparseOutcome::fail(const Error& error) {
  if (state_.load(std::memory_order_relaxed) != State::under_way) {
    return;
  }
  error_ = error;
  state_.store(State::failed, std::memory_order_release);
}

} // namespace weir::host
