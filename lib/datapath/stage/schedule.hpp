// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <vector>

namespace weir::stage {

/// When the timers of each ring are to be polled next. Times are in ns. To expect something costs
/// one comparison, so that every packet may do it. A poll passes over blocks of rings none of which
/// is due, so that it takes little where rings are many.
class Schedule {
 public:
  static constexpr std::uint64_t kNever = UINT64_MAX;

  explicit Schedule(std::size_t rings) { resize(rings); }

  void resize(std::size_t rings) {
    due_.resize(rings, kNever);
    first_.resize((rings + kBlock - 1) / kBlock, kNever);
  }

  /// Nothing is expected of the ring any more.
  void forget(std::uint16_t ring) { due_[ring] = kNever; }

  /// The ring is to be polled by then.
  void expect(std::uint16_t ring, std::uint64_t time) {
    assert(ring < due_.size());
    if (time < due_[ring]) {
      due_[ring] = time;
      first_[ring / kBlock] = std::min(first_[ring / kBlock], time);
      next_ = std::min(next_, time);
    }
  }

  /// The next poll is at that time or before it, whatever ring it is for.
  void hurry(std::uint64_t time) { next_ = std::min(next_, time); }

  std::uint64_t next() const { return next_; }

  /// Calls `act` with each ring whose time has come. It returns when the ring is due again.
  template <typename Act>
  void poll(std::uint64_t now, Act&& act) {
    next_ = kNever;
    for (std::size_t block = 0; block < first_.size(); ++block) {
      if (first_[block] <= now) {
        poll_block(block, now, act);
      }
      next_ = std::min(next_, first_[block]);
    }
  }

 private:
  static constexpr std::size_t kBlock = 32; // rings

  template <typename Act>
  void poll_block(std::size_t block, std::uint64_t now, Act&& act) {
    first_[block] = kNever;
    const std::size_t end = std::min((block + 1) * kBlock, due_.size());
    for (std::size_t ring = block * kBlock; ring < end; ++ring) {
      if (due_[ring] <= now) {
        due_[ring] = kNever;
        due_[ring] = act(static_cast<std::uint16_t>(ring));
      }
      first_[block] = std::min(first_[block], due_[ring]);
    }
  }

  std::vector<std::uint64_t> due_;   // by ring
  std::vector<std::uint64_t> first_; // of a block's, or before it
  std::uint64_t next_ = kNever;      // of all, or before it
};

} // namespace weir::stage
