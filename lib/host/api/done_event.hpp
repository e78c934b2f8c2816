// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "host/base/stream.hpp"

#include <cstddef>

namespace weir::host {

/// A descriptor for callers that poll(2): readable while there are requests that are done and that
/// nobody has asked about since, or after the group's end. One thread at a time.
class DoneEvent {
 public:
  /// Makes it at the first call. Throws Error when the process can open no more descriptors.
  int descriptor();

  void add_done();
  void take_done();
  void end();

 private:
  void update();

  Socket event_; // empty until somebody wants it
  std::size_t done_ = 0;
  bool has_ended_ = false;
  bool is_readable_ = false;
};

} // namespace weir::host
