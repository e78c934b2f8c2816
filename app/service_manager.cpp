// SPDX-License-Identifier: BSD-3-Clause
#include "service_manager.hpp"

#include <cstdint>
#include <systemd/sd-daemon.h>

namespace weir::app {
namespace {

void tell(const std::string& state) {
  sd_notify(0, state.c_str()); // who does not listen need not know
}

} // namespace

ServiceManager::ServiceManager() {
  std::uint64_t limit_us = 0;
  if (sd_watchdog_enabled(0, &limit_us) > 0) {
    watchdog_period_ = std::chrono::milliseconds(limit_us / 3000);
  }
}

void ServiceManager::tell_ready() {
  tell("READY=1");
}

void ServiceManager::tell_reloading() {
  tell("RELOADING=1");
}

void ServiceManager::tell_stopping() {
  tell("STOPPING=1");
}

void ServiceManager::ask_for_time_to_stop(std::chrono::seconds more) {
  tell("EXTEND_TIMEOUT_USEC=" + std::to_string(std::chrono::microseconds(more).count()));
}

void ServiceManager::tell_status(const std::string& text) {
  tell("STATUS=" + text);
}

void ServiceManager::give_sign_of_life() {
  tell("WATCHDOG=1");
}

} // namespace weir::app
