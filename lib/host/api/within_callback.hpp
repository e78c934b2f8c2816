// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

namespace weir::host {

/// While it lives, this thread is in a callback of on_done.
class WithinCallback {
 public:
  WithinCallback();
  ~WithinCallback();
  WithinCallback(const WithinCallback&) = delete;
  WithinCallback& operator=(const WithinCallback&) = delete;

 private:
  const bool before_; // of another request
};

bool is_within_callback();

/// Throws std::invalid_argument in a callback of on_done, for what would wait there.
void refuse_within_callback(std::string_view what);

} // namespace weir::host
