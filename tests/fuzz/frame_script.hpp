// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// How the fuzzers read one input as a sequence of frames: for each frame a byte of flags and port,
/// two bytes of length (little-endian), then the frame. The last frame may be cut. Before a frame,
/// the flags may let time pass, reset a ring, withdraw it or add it again (and a region), make the
/// worker slow or fast, or load an operator or unload it.

#include "frame/frame.hpp"
#include "wire/icrc.hpp"
#include "wire/parse.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weir::fuzz {

enum class Order : std::uint8_t {
  none,
  pass_time,
  slow_down_or_catch_up,
  drain_rings,
  reset_rings,
  withdraw_or_add,
  load_or_unload,
};

struct ScriptedFrame {
  std::uint16_t port = 0;
  Order before = Order::none; // an operator's action before the frame
  std::vector<std::uint8_t> bytes;
};

class FrameScript {
 public:
  explicit FrameScript(std::span<const std::uint8_t> input) : rest_(input) {}

  std::optional<ScriptedFrame> next() {
    constexpr std::size_t head_bytes = 3;
    if (rest_.size() < head_bytes) {
      return std::nullopt;
    }
    const std::uint8_t flags = rest_[0];
    const std::size_t length = std::size_t{rest_[1]} | std::size_t{rest_[2]} << 8;
    rest_ = rest_.subspan(head_bytes);
    const auto bytes = rest_.first(std::min(length, rest_.size()));
    rest_ = rest_.subspan(bytes.size());
    ScriptedFrame frame{
        static_cast<std::uint16_t>(flags & 0x03), order_of(flags), {bytes.begin(), bytes.end()}};
    if ((flags & kKeepIcrc) == 0) {
      make_icrc_valid(frame.bytes);
    }
    return frame;
  }

 private:
  static constexpr std::uint8_t kKeepIcrc = 0x80;
  static constexpr std::uint8_t kOrderBits = 0x70;

  /// One value of eight for each action, so that most inputs have incarnations that last.
  static Order order_of(std::uint8_t flags) {
    switch (flags & kOrderBits) {
    case 0x20:
      return Order::pass_time;
    case 0x30:
      return Order::load_or_unload;
    case 0x40:
      return Order::slow_down_or_catch_up;
    case 0x50:
      return Order::drain_rings;
    case 0x60:
      return Order::reset_rings;
    case 0x70:
      return Order::withdraw_or_add;
    default:
      return Order::none;
    }
  }

  /// A fuzzer cannot guess a CRC, and most of the code is behind this check.
  static void make_icrc_valid(std::vector<std::uint8_t>& bytes) {
    frame::Frame frame;
    frame.data = bytes.data();
    frame.length = static_cast<std::uint32_t>(bytes.size());
    frame.packet = wire::parse(frame.bytes());
    if (frame.packet.parsed == wire::Parsed::message ||
        frame.packet.parsed == wire::Parsed::transport) {
      wire::store_icrc(frame, wire::compute_icrc(frame));
    }
  }

  std::span<const std::uint8_t> rest_;
};

/// Ends the run on failure; libFuzzer keeps the input.
inline void require(bool holds, const char* what) {
  if (!holds) {
    __builtin_printf("broken: %s\n", what);
    __builtin_trap();
  }
}

} // namespace weir::fuzz
