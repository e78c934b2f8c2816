// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace weir::app {

/// Tells systemd what this process does (sd_notify(3)). Without systemd, or in a build without
/// libsystemd, nobody is told.
class ServiceManager {
 public:
  using Clock = std::chrono::steady_clock;

  ServiceManager();

  void tell_ready();
  /// Until tell_ready().
  void tell_reloading();
  void tell_stopping();
  /// The stop may take so much longer, from now, than the unit allows (TimeoutStopSec=).
  void ask_for_time_to_stop(std::chrono::seconds more);
  /// For `systemctl status`.
  void tell_status(const std::string& text);

  /// Whether systemd should hear soon that the process is alive: three times within the time after
  /// which it would end it (WatchdogSec=). Never, if that is not set.
  bool wants_sign_of_life(Clock::time_point now) const;
  void give_sign_of_life(Clock::time_point now);
  /// The next sign is due a third of the time later.
  void withhold_sign_of_life(Clock::time_point now);

 private:
  std::optional<Clock::duration> period_; // of signs of life; none: nobody waits for them
  Clock::time_point due_{};
};

} // namespace weir::app
