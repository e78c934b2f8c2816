// SPDX-License-Identifier: BSD-3-Clause
#include "network/timed_device.hpp"

namespace weir::network {

bool TimedDevice::expire() {
  if (!timer_.goes_off(plug_.now())) {
    return false;
  }
  device_.expire(now());
  return true;
}

void TimedDevice::transmit() {
  while (const std::size_t bytes = device_.transmit(buffer_, now())) {
    plug_.send(std::span(buffer_).first(bytes));
  }
  if (const auto time = timer_.set(device_.next_deadline())) {
    plug_.wake_at(*time);
  }
}

} // namespace weir::network
