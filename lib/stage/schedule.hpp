// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace weir::stage {

/// When the timers of each ring are to be looked at next. Times are in ns. To expect something
/// costs one comparison, so that every packet may do it.
class Schedule {
 public:
  static constexpr std::uint64_t kNever = UINT64_MAX;

  explicit Schedule(std::size_t rings) : look_at_(rings, kNever) {}

  void resize(std::size_t rings) { look_at_.resize(rings, kNever); }

  /// Nothing is expected of the ring any more.
  void forget(std::uint16_t ring) { look_at_[ring] = kNever; }

  /// The ring is to be looked at by then.
  void expect(std::uint16_t ring, std::uint64_t time) {
    if (time < look_at_[ring]) {
      look_at_[ring] = time;
      next_ = std::min(next_, time);
    }
  }

  std::uint64_t next() const { return next_; }

  /// Calls `look` with each ring whose time has come. It returns when the ring is due again.
  template <typename Look>
  void look(std::uint64_t now, Look&& look) {
    next_ = kNever;
    for (std::size_t ring = 0; ring < look_at_.size(); ++ring) {
      if (look_at_[ring] <= now) {
        look_at_[ring] = kNever;
        look_at_[ring] = look(static_cast<std::uint16_t>(ring));
      }
      next_ = std::min(next_, look_at_[ring]);
    }
  }

 private:
  std::vector<std::uint64_t> look_at_; // by ring
  std::uint64_t next_ = kNever;        // not after the first of them
};

} // namespace weir::stage
