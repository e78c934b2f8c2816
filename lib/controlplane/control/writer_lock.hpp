// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "lcore/lock_order.hpp"
#include "lcore/quiesce.hpp"
#include "ring/current.hpp"

#include <memory>
#include <mutex>
#include <utility>

namespace weir::control {

using WriterMutex = lcore::RankedMutex<lcore::LockRank::writer>;

/// While an object lives, no other thread makes, changes or withdraws a ring, or opens or closes a
/// port. A function that does so, or that relies on it, takes one as an argument.
class [[nodiscard]] WriterLock {
 public:
  explicit WriterLock(WriterMutex& mutex) : lock_(mutex) {}

 private:
  std::lock_guard<WriterMutex> lock_;
};

/// A value that control reads under one of two locks and changes under both: so it changes only
/// while the lcores stand still, and stays while somebody plans the next change.
template <typename Value>
class Guarded {
 public:
  explicit Guarded(Value first) : value_(std::move(first)) {}

  const Value& read(const WriterLock&) const { return value_; }

  const Value& read(const lcore::Quiesce&) const { return value_; }

  Value& change(const WriterLock&, const lcore::Quiesce&) { return value_; }

 private:
  Value value_;
};

/// The same for a value that is swapped as a whole. Whoever shares it needs no lock.
template <typename Value>
class GuardedCurrent {
 public:
  explicit GuardedCurrent(Value first) : current_(std::move(first)) {}

  const Value& read(const WriterLock&) const { return *current_; }

  const Value& read(const lcore::Quiesce&) const { return *current_; }

  std::shared_ptr<const Value> share() const { return current_.share(); }

  /// Returns the previous value, for the caller to free after the stop.
  std::shared_ptr<const Value> swap(std::shared_ptr<const Value> next, const WriterLock&,
                                    const lcore::Quiesce&) {
    return current_.swap(std::move(next));
  }

  /// While no lcore runs.
  void set(Value value) { current_.swap(std::make_shared<const Value>(std::move(value))); }

  const ring::Current<Value>& for_lcores() const { return current_; }

 private:
  ring::Current<Value> current_;
};

} // namespace weir::control
