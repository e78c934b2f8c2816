// SPDX-License-Identifier: BSD-3-Clause
#include "progress_bar.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <unistd.h>

namespace weir::app {
namespace {

constexpr std::size_t kWidth = 30;
constexpr const char* kWipe = "\r\033[K";

} // namespace

ProgressBar::ProgressBar(std::size_t pieces)
    : pieces_(pieces), place_(isatty(STDERR_FILENO) != 0 ? Place::terminal : Place::elsewhere) {}

ProgressBar::~ProgressBar() {
  if (place_ == Place::terminal) {
    std::fputs(kWipe, stderr);
  }
}

void ProgressBar::next(std::string_view about) {
  if (place_ == Place::terminal) {
    const std::size_t filled = pieces_ == 0 ? kWidth : kWidth * begun_ / pieces_;
    fmt::print(stderr, "{}[{}{}] {}/{} {}", kWipe, std::string(filled, '#'),
               std::string(kWidth - filled, '.'), begun_, pieces_, about);
    std::fflush(stderr);
  }
  ++begun_;
}

} // namespace weir::app
