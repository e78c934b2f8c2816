// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace weir::control {

/// A thread that does something again and again, until this object goes. The first time is a period
/// after the beginning.
class Periodic {
 public:
  Periodic(std::chrono::milliseconds period, std::function<void()> work)
      : period_(period), work_(std::move(work)),
        thread_([this](const std::stop_token& stop) { run(stop); }) {}

  ~Periodic() = default;
  Periodic(const Periodic&) = delete; // the thread refers to it
  Periodic& operator=(const Periodic&) = delete;

 private:
  void run(const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    while (!stopped.wait_for(lock, stop, period_, [&stop] { return stop.stop_requested(); })) {
      work_();
    }
  }

  const std::chrono::milliseconds period_;
  const std::function<void()> work_;
  std::jthread thread_; // the last one: it uses the others
};

} // namespace weir::control
