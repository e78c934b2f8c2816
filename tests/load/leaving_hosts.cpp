// SPDX-License-Identifier: BSD-3-Clause
#include "leaving_hosts.hpp"

#include "noise.hpp"

#include <chrono>

namespace weir::load {
namespace {

constexpr std::chrono::milliseconds kStay{20};

std::uint64_t send_for(std::chrono::milliseconds time, host::FrameIo& wire,
                       const test::Bytes& frame) {
  const auto end = std::chrono::steady_clock::now() + time;
  std::uint64_t frames = 0;
  while (std::chrono::steady_clock::now() < end) {
    frames += send(wire, frame) ? 1 : 0;
  }
  return frames;
}

} // namespace

std::uint64_t let_come_and_go(const Lab& lab, unsigned hosts) {
  const test::Bytes frame = middle_from_nowhere(static_cast<std::uint16_t>(Place::passer));
  std::uint64_t frames = 0;
  for (; hosts > 0; --hosts) {
    frames += send_for(kStay, *lab.open(Place::passer), frame);
  }
  return frames;
}

} // namespace weir::load
