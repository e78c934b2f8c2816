// SPDX-License-Identifier: BSD-3-Clause
#include "host/transport/transport.hpp"

#include <sched.h>

namespace weir::host {
namespace {

constexpr std::uint8_t kMaxExponent = 31;

constexpr std::chrono::nanoseconds timeout_of(std::uint8_t exponent) {
  return std::chrono::nanoseconds(std::int64_t{4096} << exponent);
}

} // namespace

bool Spins::spin() {
  if (left_ == 0) {
    return false;
  }
  --left_;
  sched_yield();
  return true;
}

std::uint8_t TransportPlan::ack_timeout_exponent() const {
  std::uint8_t exponent = 1;
  while (exponent < kMaxExponent && timeout_of(exponent) < ack_timeout) {
    ++exponent;
  }
  return exponent;
}

std::chrono::nanoseconds TransportPlan::exact_ack_timeout() const {
  return timeout_of(ack_timeout_exponent());
}

} // namespace weir::host
