// SPDX-License-Identifier: BSD-3-Clause
#include "progress_bar.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <unistd.h>

namespace weir::app {
namespace {

constexpr std::size_t kBarWidth = 30;
constexpr auto kPeriod = std::chrono::milliseconds(200);
constexpr const char* kWipe = "\r\033[K";

} // namespace

ProgressBar::ProgressBar(std::size_t pieces)
    : pieces_(pieces), place_(isatty(STDERR_FILENO) != 0 ? Place::terminal : Place::elsewhere) {}

ProgressBar::~ProgressBar() {
  wipe();
}

void ProgressBar::next(std::string_view about) {
  ++begun_;
  show(about);
}

void ProgressBar::show(std::string_view about) {
  if (place_ != Place::terminal) {
    return;
  }
  const std::size_t done = begun_ - 1;
  const std::size_t filled = pieces_ == 0 ? kBarWidth : kBarWidth * done / pieces_;
  fmt::print(stderr, "{}[{}{}] {}/{} {}", kWipe, std::string(filled, '#'),
             std::string(kBarWidth - filled, '.'), done, pieces_, about);
  std::fflush(stderr);
  shown_ = Clock::now();
}

bool ProgressBar::is_due() const {
  return place_ == Place::terminal && Clock::now() - shown_ >= kPeriod;
}

void ProgressBar::wipe() {
  if (place_ == Place::terminal) {
    std::fputs(kWipe, stderr);
    std::fflush(stderr);
  }
}

} // namespace weir::app
