// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/fork_watch.hpp"

#include <atomic>
#include <memory>

namespace weir::host {

/// The one T of this process. A child made by fork has one of its own, whose locks are free. Never
/// destroyed, because static objects may have groups.
template <typename T>
T& of_this_process() {
  struct Kept {
    explicit Kept(const Kept* parents) : before(parents) {}

    [[maybe_unused]] const Kept* const before; // for who looks for leaks
    T value;
    const Birthplace birthplace;
  };

  static constinit std::atomic<Kept*> current = nullptr;
  Kept* found = current.load();
  while (found == nullptr || !found->birthplace.is_here()) {
    auto fresh = std::make_unique<Kept>(found);
    if (current.compare_exchange_strong(found, fresh.get())) {
      return fresh.release()->value;
    }
  }
  return found->value;
}

} // namespace weir::host
