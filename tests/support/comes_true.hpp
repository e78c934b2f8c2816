// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <thread>

namespace weir::test {

/// Polls until the condition holds. False when it does not hold after `timeout`.
template <typename Condition>
bool comes_true(Condition&& condition, std::chrono::seconds timeout = std::chrono::minutes(1)) {
  constexpr std::chrono::milliseconds kPause{1};
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

} // namespace weir::test
