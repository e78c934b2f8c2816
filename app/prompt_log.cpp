// SPDX-License-Identifier: BSD-3-Clause
#include "prompt_log.hpp"

#include <cstdio>
#include <utility>

namespace weir::app {

class PromptLog::Sink : public events::LineSink {
 public:
  explicit Sink(PromptLog& log) : log_(log) {}

  void put(const events::Event& event) override { log_.put(event); }

 private:
  PromptLog& log_;
};

std::unique_ptr<events::LineSink> PromptLog::sink() {
  return std::make_unique<Sink>(*this);
}

void PromptLog::put(const events::Event& event) {
  const std::lock_guard lock(mutex_);
  if (is_open_) {
    lines_ += "weir: " + line_of(event) + "\n";
  } else {
    direct_.put(event);
  }
}

std::string PromptLog::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(lines_, {});
}

void PromptLog::close() {
  const std::lock_guard lock(mutex_);
  std::fputs(lines_.c_str(), stderr);
  lines_.clear();
  is_open_ = false;
}

} // namespace weir::app
