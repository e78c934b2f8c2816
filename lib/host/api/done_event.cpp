// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/done_event.hpp"

#include "host/base/error.hpp"

#include <fmt/format.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <sys/eventfd.h>

namespace weir::host {

int DoneEvent::descriptor() {
  if (!event_) {
    event_ = Socket([] { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
    if (!event_) {
      throw Error(ErrorCode::transport_failure, std::nullopt,
                  fmt::format("no descriptor for requests: {}", std::strerror(errno)));
    }
    update();
  }
  return event_.get();
}

void DoneEvent::add_done() {
  ++done_;
  update();
}

void DoneEvent::take_done() {
  assert(done_ != 0);
  --done_;
  update();
}

void DoneEvent::end() {
  has_ended_ = true;
  update();
}

void DoneEvent::update() {
  const bool should_be = done_ != 0 || has_ended_;
  if (!event_ || should_be == is_readable_) {
    return;
  }
  is_readable_ = should_be;
  eventfd_t count = 0;
  should_be ? eventfd_write(event_.get(), 1) : eventfd_read(event_.get(), &count);
}

} // namespace weir::host
