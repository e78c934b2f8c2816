// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "events/event_log.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace weir::events {

/// Hands events to another sink on a thread of its own: a journal that takes none holds up nobody
/// who writes, not the service manager's watchdog either. The order stays. Beyond kMostWaiting
/// events new ones are left out, and counted in a line once there is room.
class BackgroundSink : public LineSink {
 public:
  static constexpr std::size_t kMostWaiting = 1000;

  explicit BackgroundSink(std::unique_ptr<LineSink> sink);

  /// Waits until all are written.
  ~BackgroundSink() override;
  BackgroundSink(const BackgroundSink&) = delete; // the thread refers to it
  BackgroundSink& operator=(const BackgroundSink&) = delete;

  void put(const Event& event) override;

 private:
  void run();
  void tell_left_out();

  std::unique_ptr<LineSink> sink_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Event> waiting_;
  std::uint64_t left_out_ = 0;
  bool ends_ = false;
  std::thread thread_; // the last one: it uses the others
};

} // namespace weir::events
