// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "frame/counters.hpp"
#include "lcore/clock.hpp"
#include "lcore/lcore.hpp"
#include "lcore/lock_order.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace weir::lcore {

/// An lcore did not stop between two rounds in time.
class LcoreError : public std::runtime_error {
 public:
  LcoreError(unsigned lcore, const std::string& what) : std::runtime_error(what), lcore_(lcore) {}

  unsigned lcore() const { return lcore_; }

 private:
  unsigned lcore_;
};

/// Number and length of the stops; nanoseconds, measured by the asking thread.
struct StopTimes {
  std::uint64_t stops = 0;
  frame::Histogram gathering; // from the first lcore that is told until the last one has stopped
  frame::Histogram standing;  // from then until they may go on
  bool kept_cpu = false;      // whether the asking thread kept its CPU the last time
};

/// All data lcores of a switch. One thread at a time may stop them.
class LcoreSet {
 public:
  using Lcores = std::vector<std::unique_ptr<Lcore>>;
  using Mutex = RankedMutex<LockRank::lcores>;

  LcoreSet() = default;
  LcoreSet(const LcoreSet&) = delete;
  LcoreSet& operator=(const LcoreSet&) = delete;

  /// Once, before the lcores run.
  void take(Lcores lcores) { lcores_ = std::move(lcores); }

  std::size_t size() const { return lcores_.size(); }

  Lcore& operator[](std::size_t lcore) const { return *lcores_[lcore]; }

  Lcores::const_iterator begin() const { return lcores_.begin(); }

  Lcores::const_iterator end() const { return lcores_.end(); }

  /// Nobody stops the lcores while this is held, and they go on.
  std::unique_lock<Mutex> keep_going() const { return std::unique_lock(one_at_a_time_); }

  StopTimes stop_times() const;

 private:
  friend class Quiesce;

  Lcores lcores_;
  mutable Mutex one_at_a_time_;
  StopTimes stop_times_;
};

/// All lcores are stopped while an object lives. It tells all of them before it waits for the
/// first, and the asking thread spins. So each lcore stops for as long as the slowest one's round
/// takes, and no longer. Who has an object may read and change what is the lcores' own: a function
/// that does so takes one as an argument.
class Quiesce {
 public:
  /// Throws LcoreError.
  explicit Quiesce(LcoreSet& lcores);
  ~Quiesce();
  Quiesce(const Quiesce&) = delete;
  Quiesce& operator=(const Quiesce&) = delete;

 private:
  void wait_until(bool (Lcore::*is_there)() const);
  void resume();

  LcoreSet& lcores_;
  std::lock_guard<LcoreSet::Mutex> lock_;
  Clock clock_;
  std::uint64_t switches_;
  std::uint64_t standing_since_ = 0;
};

} // namespace weir::lcore
