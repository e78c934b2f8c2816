// SPDX-License-Identifier: BSD-3-Clause
#include "lcore/quiesce.hpp"

#include "lcore/context_switches.hpp"

#include <fmt/format.h>
#include <rte_pause.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <thread>

namespace weir::lcore {
namespace {

constexpr std::chrono::milliseconds kStandStillTimeout{2000};
constexpr unsigned kSpinsBeforeYield = 1000;

} // namespace

StopTimes LcoreSet::stop_times() const {
  const auto lock = keep_going();
  return stop_times_;
}

Quiesce::Quiesce(LcoreSet& lcores)
    : lcores_(lcores), lock_(lcores.one_at_a_time_), switches_(context_switches()) {
  for (const auto& lcore : lcores_) {
    lcore->stay_awake();
  }
  wait_until(&Lcore::is_awake);
  const std::uint64_t start = clock_.now().ns;
  for (const auto& lcore : lcores_) {
    lcore->quiesce();
  }
  wait_until(&Lcore::is_quiescent);
  standing_since_ = clock_.now().ns;
  lcores_.stop_times_.gathering.add(standing_since_ - start);
}

Quiesce::~Quiesce() {
  assert(std::ranges::all_of(lcores_, [](const auto& lcore) { return lcore->is_quiescent(); }));
  resume();
  lcores_.stop_times_.standing.add(clock_.now().ns - standing_since_);
  lcores_.stop_times_.kept_cpu = context_switches() == switches_;
  ++lcores_.stop_times_.stops;
}

void Quiesce::wait_until(bool (Lcore::*is_there)() const) {
  const auto deadline = std::chrono::steady_clock::now() + kStandStillTimeout;
  for (const auto& lcore : lcores_) {
    for (unsigned spins = 0; !((*lcore).*is_there)(); ++spins) {
      if (spins < kSpinsBeforeYield) {
        rte_pause();
        continue;
      }
      std::this_thread::yield(); // the lcore may want this CPU
      if (std::chrono::steady_clock::now() > deadline) {
        resume();
        throw LcoreError(lcore->id(), fmt::format("lcore {} did not stand still within {} ms",
                                                  lcore->id(), kStandStillTimeout.count()));
      }
    }
  }
}

void Quiesce::resume() {
  for (const auto& lcore : lcores_) {
    lcore->resume();
  }
}

} // namespace weir::lcore
