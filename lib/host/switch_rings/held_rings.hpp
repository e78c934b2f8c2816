// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/group_options.hpp"
#include "host/base/stream.hpp"
#include "host/switch_rings/hold_end.hpp"
#include "host/switch_rings/module.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace weir::host {

/// Rings of a switch, or of a fabric's manager, made now, and gone with this object or this
/// process.
class HeldRings {
 public:
  /// One for each of the options' rings, with the ranks' addresses; of RingIds::offered, one or
  /// more. They take hellos with this nonce alone, which is the run's. Throws Error
  /// (not_aggregated): the switch is not reached within the options' form_timeout, or refuses, or
  /// `is_stopped` becomes true meanwhile, which this thread asks.
  HeldRings(const SwitchAccess& access, const GroupOptions& options,
            const std::vector<std::string>& members, std::uint32_t nonce,
            std::function<bool()> is_stopped = {});

  ~HeldRings() { release(); }

  HeldRings(const HeldRings&) = delete;
  HeldRings& operator=(const HeldRings&) = delete;

  const std::vector<std::uint32_t>& ids() const { return ids_; }

  /// Why the switch made fewer than it offers; empty if it did not.
  const std::string& shortage() const { return shortage_; }

  /// From now on `told` is called, at most once and perhaps by another thread, when the switch has
  /// ended a ring. It may be late already. `told` must not call this object.
  void when_ended(std::function<void(std::string_view why)> told);

  /// Ends the rings. Any thread but one in `told`, which is not called any more.
  void release();

 private:
  void make_on_switch(weir_hold_order order, const GroupOptions& options);
  void make_on_fabric(weir_hold_order order, const GroupOptions& options);
  std::size_t add(weir_hold_order& order, std::uint32_t id);
  void add_offered(weir_hold_order& order, std::size_t most);
  void note_end(std::string_view why);
  bool is_stopped() const;

  const std::string maker_;                // "switch ADDRESS"
  const std::function<bool()> is_stopped_; // of the constructor alone; empty: never
  const weir_switch_module* module_ = nullptr;
  Deadline deadline_;              // of the constructor
  std::vector<std::uint32_t> ids_; // does not change any more
  std::string shortage_;           // likewise
  std::mutex mutex_;               // guards the next
  std::vector<weir_hold*> holds_;
  HoldEnd end_;
};

} // namespace weir::host
