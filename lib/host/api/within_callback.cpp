// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/within_callback.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace weir::host {
namespace {

thread_local bool is_within = false;

} // namespace

WithinCallback::WithinCallback() : before_(std::exchange(is_within, true)) {}

WithinCallback::~WithinCallback() {
  is_within = before_;
}

bool is_within_callback() {
  return is_within;
}

void refuse_within_callback(std::string_view what) {
  if (is_within) {
    throw std::invalid_argument(
        fmt::format("{}: found within a callback; allowed there: calls that do not wait", what));
  }
}

} // namespace weir::host
