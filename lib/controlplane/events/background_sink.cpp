// SPDX-License-Identifier: BSD-3-Clause
#include "events/background_sink.hpp"

#include <fmt/format.h>

#include <utility>

namespace weir::events {

BackgroundSink::BackgroundSink(std::unique_ptr<LineSink> sink)
    : sink_(std::move(sink)), thread_([this] { run(); }) {}

BackgroundSink::~BackgroundSink() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void BackgroundSink::put(const Event& event) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() == kMostWaiting) {
      ++left_out_;
      return;
    }
    tell_left_out();
    waiting_.push_back(event);
  }
  changed_.notify_one();
}

/// Caller holds mutex_.
void BackgroundSink::tell_left_out() {
  if (const std::uint64_t lines = std::exchange(left_out_, 0); lines > 0) {
    waiting_.push_back({EventKind::lines_left_out,
                        fmt::format("{} lines were left out: the log took none", lines),
                        {{"lines", fmt::format("{}", lines)}}});
  }
}

void BackgroundSink::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty()) {
      return;
    }
    const Event event = std::move(waiting_.front());
    waiting_.pop_front();
    if (waiting_.empty()) {
      tell_left_out();
    }
    lock.unlock();
    sink_->put(event);
    lock.lock();
  }
}

} // namespace weir::events
