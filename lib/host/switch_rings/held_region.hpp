// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/group_options.hpp"
#include "host/region/region_plan.hpp"
#include "host/switch_rings/hold_end.hpp"
#include "host/switch_rings/module.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

namespace weir::host {

/// A region of a switch, made now, and gone with this object or this process.
class HeldRegion {
 public:
  /// Of so many bytes, with the options' path MTU. Throws Error (no_region): no switch is named, it
  /// is not reached within the options' form_timeout, or it refuses, with its text.
  HeldRegion(const GroupOptions& group, const RegionOptions& options,
             std::span<const RegionMember> members, std::size_t bytes);

  ~HeldRegion() { release(); }

  HeldRegion(const HeldRegion&) = delete;
  HeldRegion& operator=(const HeldRegion&) = delete;

  const MadeRegion& made() const { return made_; }

  /// From now on `told` is called, at most once and perhaps by another thread, when the switch has
  /// ended the region. It may be late already. `told` must not call this object.
  void when_ended(std::function<void(std::string_view why)> told);

  /// Ends the region. Any thread but one in `told`, which is not called any more.
  void release();

 private:
  void make(const GroupOptions& group, const RegionOptions& options,
            std::span<const RegionMember> members, std::size_t bytes);
  void take(const weir_held_region& held);
  void note_end(std::string_view why);

  const std::string maker_; // "switch ADDRESS"
  const SwitchAccess access_;
  MadeRegion made_;
  std::mutex mutex_; // guards the next
  weir_hold* hold_ = nullptr;
  HoldEnd end_;
};

} // namespace weir::host
