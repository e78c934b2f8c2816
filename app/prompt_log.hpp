// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "events/event_log.hpp"
#include "events/text_sink.hpp"

#include <mutex>
#include <string>

namespace weir::app {

/// Lines of the log while a person types at the prompt. They wait until the prompt prints them, so
/// that they neither stand in the middle of an answer nor of the line being typed. Afterwards they
/// go to standard error at once.
class PromptLog {
 public:
  /// For the event log, which this outlives.
  std::unique_ptr<events::LineSink> sink();

  /// The lines that have come since the last call.
  std::string take();

  /// The prompt prints no more.
  void close();

 private:
  class Sink;

  void put(const events::Event& event);

  std::mutex mutex_;
  bool is_open_ = true;
  std::string lines_;
  events::TextSink direct_;
};

} // namespace weir::app
