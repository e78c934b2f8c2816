// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace weir::stage {

/// When the timers of each ring are to be looked at next. Times are in ns. To expect something
/// costs one comparison, so that every packet may do it. A look passes over rings in groups none of
/// which is due, so that it takes little where rings are many.
class Schedule {
 public:
  static constexpr std::uint64_t kNever = UINT64_MAX;

  explicit Schedule(std::size_t rings) { resize(rings); }

  void resize(std::size_t rings) {
    look_at_.resize(rings, kNever);
    first_.resize((rings + kGroup - 1) / kGroup, kNever);
  }

  /// Nothing is expected of the ring any more.
  void forget(std::uint16_t ring) { look_at_[ring] = kNever; }

  /// The ring is to be looked at by then.
  void expect(std::uint16_t ring, std::uint64_t time) {
    if (time < look_at_[ring]) {
      look_at_[ring] = time;
      first_[ring / kGroup] = std::min(first_[ring / kGroup], time);
      next_ = std::min(next_, time);
    }
  }

  /// The next look is at that time or before it, whatever ring it is for.
  void hurry(std::uint64_t time) { next_ = std::min(next_, time); }

  std::uint64_t next() const { return next_; }

  /// Calls `look` with each ring whose time has come. It returns when the ring is due again.
  template <typename Look>
  void look(std::uint64_t now, Look&& look) {
    next_ = kNever;
    for (std::size_t group = 0; group < first_.size(); ++group) {
      if (first_[group] <= now) {
        look_at_group(group, now, look);
      }
      next_ = std::min(next_, first_[group]);
    }
  }

 private:
  static constexpr std::size_t kGroup = 32; // rings

  template <typename Look>
  void look_at_group(std::size_t group, std::uint64_t now, Look&& look) {
    first_[group] = kNever;
    const std::size_t end = std::min((group + 1) * kGroup, look_at_.size());
    for (std::size_t ring = group * kGroup; ring < end; ++ring) {
      if (look_at_[ring] <= now) {
        look_at_[ring] = kNever;
        look_at_[ring] = look(static_cast<std::uint16_t>(ring));
      }
      first_[group] = std::min(first_[group], look_at_[ring]);
    }
  }

  std::vector<std::uint64_t> look_at_; // by ring
  std::vector<std::uint64_t> first_;   // of a group's, or before it
  std::uint64_t next_ = kNever;        // of all, or before it
};

} // namespace weir::stage
