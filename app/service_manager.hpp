// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace weir::app {

/// Tells systemd what this process does (sd_notify(3)). Without systemd, or in a build without
/// libsystemd, nobody is told. Any thread may use it.
class ServiceManager {
 public:
  ServiceManager();

  void tell_ready();
  /// Until tell_ready().
  void tell_reloading();
  void tell_stopping();
  /// The stop may take so much longer, from now, than the unit allows (TimeoutStopSec=).
  void ask_for_time_to_stop(std::chrono::seconds more);
  /// For `systemctl status`.
  void tell_status(const std::string& text);

  /// How often systemd wants to hear that the process is alive: three times within the time after
  /// which it would end it (WatchdogSec=). None: nobody waits for that.
  std::optional<std::chrono::milliseconds> watchdog_period() const { return watchdog_period_; }

  void give_sign_of_life();

 private:
  std::optional<std::chrono::milliseconds> watchdog_period_;
};

} // namespace weir::app
