// SPDX-License-Identifier: BSD-3-Clause
#include "network/timed_device.hpp"

namespace weir::network {

bool TimedDevice::expire() {
  const bool link_is_free = link_timer_.goes_off(plug_.now());
  if (!timer_.goes_off(plug_.now())) {
    return link_is_free;
  }
  device_.expire(now());
  return true;
}

void TimedDevice::transmit() {
  while (plug_.takes_frame_at() <= plug_.now()) {
    const std::size_t bytes = device_.transmit(buffer_, now());
    if (bytes == 0) {
      break;
    }
    plug_.send(std::span(buffer_).first(bytes));
  }
  if (plug_.takes_frame_at() > plug_.now()) {
    if (const auto time = link_timer_.set(plug_.takes_frame_at())) {
      plug_.wake_at(*time);
    }
  }
  if (const auto time = timer_.set(device_.next_deadline())) {
    plug_.wake_at(*time);
  }
}

} // namespace weir::network
