// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/monitor.hpp"
#include "events/event_log.hpp"
#include "service_manager.hpp"

#include <chrono>

namespace weir::app {

/// Tells systemd that the switch is alive. An lcore that hangs does not stop for a look either;
/// then systemd hears nothing more, and starts the switch again.
class FeedWatchdog : public control::MonitorReader {
 public:
  /// Both outlive it.
  FeedWatchdog(ServiceManager& service, events::EventLog& log) : service_(service), log_(log) {}

  /// At most `most`, and often enough for systemd.
  std::chrono::milliseconds period_within(std::chrono::milliseconds most) const;

  void see(const control::Look& look) override;
  void miss(const lcore::LcoreError& error) override;

 private:
  ServiceManager& service_;
  events::EventLog& log_;
  bool has_told_ = false; // that it forwards, since an lcore hung
};

} // namespace weir::app
