// SPDX-License-Identifier: BSD-3-Clause
#include "control/caretaker.hpp"

namespace weir::control {

Caretaker::Caretaker(Switch& weir) : weir_(weir), thread_([this] { run(); }) {}

Caretaker::~Caretaker() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  wakes_.notify_one();
  thread_.join();
}

void Caretaker::run() {
  std::unique_lock lock(mutex_);
  while (!is_over_) {
    lock.unlock();
    look();
    lock.lock();
    wakes_.wait_for(lock, kPeriod, [this] { return is_over_; });
  }
}

void Caretaker::look() {
  try {
    const TendedRings seen = weir_.tended_rings();
    listening_.look(seen.now_ns);
    for (const TendedRing& ring : seen.rings) {
      if (grounds_to_reclaim(ring, listening_, seen.now_ns)) {
        reclaim(ring.spec.id);
      }
    }
  } catch (const LcoreError&) { // who hangs has heard nobody: the next look counts from then
  }
}

/// Unless it woke up since the look.
void Caretaker::reclaim(std::uint32_t ring) {
  try {
    weir_.reclaim_if(ring, [this](const TendedRing& now_seen, std::uint64_t now_ns) {
      return grounds_to_reclaim(now_seen, listening_, now_ns);
    });
  } catch (const NoSuchRing&) { // somebody else has withdrawn it
  }
}

} // namespace weir::control
