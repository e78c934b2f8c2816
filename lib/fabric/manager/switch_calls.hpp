// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "jobs/outside.hpp"
#include "manager/config.hpp"
#include "manager/mailbox.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>
#include <weir/v1/switch.pb.h>

namespace weir::manager {

/// What the switches' answers are given to, by the thread that has the mailbox.
struct SwitchEvents {
  std::function<void(jobs::SwitchIndex, const jobs::Outcome&, const v1::ClaimFabricResponse&)>
      claimed;
  std::function<void(jobs::SwitchIndex, std::uint64_t number, const jobs::Outcome&)> ordered;
  std::function<void(jobs::SwitchIndex, const v1::SwitchSeen&)> seen;
  std::function<void(jobs::SwitchIndex, const jobs::Outcome&)> watch_ended;
};

/// The calls to the switches' control services.
class SwitchCalls {
 public:
  /// `mailbox` outlives it. Throws std::runtime_error for certificates that cannot be read.
  SwitchCalls(const Config& config, Mailbox& mailbox, SwitchEvents events);
  /// Ends all calls.
  ~SwitchCalls();
  SwitchCalls(const SwitchCalls&) = delete;
  SwitchCalls& operator=(const SwitchCalls&) = delete;

  void claim(jobs::SwitchIndex at, const v1::ClaimFabricRequest& request);
  void apply(jobs::SwitchIndex at, const v1::ApplyRingsRequest& request);
  void remove(jobs::SwitchIndex at, const v1::RemoveRingsRequest& request);
  void watch(jobs::SwitchIndex at, const v1::WatchSwitchRequest& request);

 private:
  struct Parts;
  std::shared_ptr<Parts> parts_; // calls under way have it too
};

} // namespace weir::manager
