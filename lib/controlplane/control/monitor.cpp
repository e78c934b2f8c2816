// SPDX-License-Identifier: BSD-3-Clause
#include "control/monitor.hpp"

#include "control/inspector.hpp"

#include <condition_variable>
#include <mutex>
#include <utility>

namespace weir::control {

Monitor::Monitor(const Inspector& inspector, Readers readers, std::chrono::milliseconds period)
    : inspector_(inspector), readers_(std::move(readers)), period_(period),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void Monitor::run(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  while (!stopped.wait_for(lock, stop, period_, [&stop] { return stop.stop_requested(); })) {
    look();
  }
}

void Monitor::look() {
  try {
    const Look look = inspector_.look();
    for (MonitorReader* const reader : readers_) {
      reader->see(look);
    }
  } catch (const lcore::LcoreError& error) {
    for (MonitorReader* const reader : readers_) {
      reader->miss(error);
    }
  }
}

} // namespace weir::control
