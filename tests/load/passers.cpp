// SPDX-License-Identifier: BSD-3-Clause
#include "passers.hpp"

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

std::uint64_t let_pass(const Lab& lab, unsigned passers) {
  const test::Bytes frame = middle_from_nowhere(static_cast<std::uint16_t>(Place::passer));
  std::uint64_t frames = 0;
  for (; passers > 0; --passers) {
    frames += send_for(kStay, *lab.open(Place::passer), frame);
  }
  return frames;
}

} // namespace weir::load
