// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/control_note.hpp"
#include "host/base/error.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace weir::host {

/// Why regions of a group have ended: rank 0 hears it from the switch, the others from rank 0. Any
/// thread.
class RegionEnds {
 public:
  /// Must not wait, and not call this object.
  using Told = std::function<void(const Error&)>;

  /// Who drives the group.
  struct Driver {
    std::function<void()> wake;     // there is something to tell the others
    std::function<void()> progress; // a step, unless another thread drives
  };

  /// Of the group's next region. All ranks make their regions in the same order.
  std::uint32_t next_number();

  /// `told` is called once the region has ended, now if it has; perhaps several times.
  void watch(std::uint32_t number, Told told);
  /// `told` does not run when it returns.
  void forget(std::uint32_t number);

  /// The region has ended, as another rank says. The first that says so counts.
  void note(const EndedRegion& ended);
  /// The same on rank 0, which the others are to be told.
  void tell(const EndedRegion& ended);
  /// The group is over, and all its regions with it.
  void end_all(const Error& error);

  /// None: nobody drives any more.
  void set_driver(Driver driver);
  void progress();

  /// For who drives the group, at each step.
  bool has_untold() const { return has_untold_.load(std::memory_order_acquire); }

  std::vector<EndedRegion> take_untold();

 private:
  void end(std::uint32_t number, const Error& error);

  std::mutex mutex_; // guards the next
  std::uint32_t last_ = 0;
  std::map<std::uint32_t, Told> watched_;
  std::map<std::uint32_t, Error> ended_; // those that nobody watched then
  std::optional<Error> all_;
  std::vector<EndedRegion> untold_;
  std::atomic<bool> has_untold_ = false;
  std::mutex driving_; // guards the next
  Driver driver_;
};

} // namespace weir::host
