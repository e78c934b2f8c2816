// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// The AETH's syndrome byte (IBTA §9.7.5.2): bit 7 zero, two bits of kind, five of value.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace weir::wire {

enum class SyndromeKind : std::uint8_t {
  acknowledge = 0, // value: end-to-end credits
  rnr = 1,         // value: timer code
  reserved = 2,
  nak = 3, // value: NakCode
};

enum class NakCode : std::uint8_t {
  sequence_error = 0,
  invalid_request = 1,
  remote_access = 2,
  remote_operational = 3,
};

inline constexpr std::uint8_t kSyndromeValueMask = 0x1f;
/// An ACK whose credit count means: no limit (IBTA §9.7.7.2).
inline constexpr std::uint8_t kAckUnlimited = 0x1f;

constexpr SyndromeKind kind_of(std::uint8_t syndrome) {
  return syndrome >= 0x80 ? SyndromeKind::reserved : static_cast<SyndromeKind>(syndrome >> 5);
}

constexpr std::uint8_t value_of(std::uint8_t syndrome) {
  return syndrome & kSyndromeValueMask;
}

constexpr std::uint8_t ack_syndrome(std::uint8_t credits) {
  return credits & kSyndromeValueMask;
}

constexpr std::uint8_t nak_syndrome(NakCode code) {
  return static_cast<std::uint8_t>(static_cast<unsigned>(SyndromeKind::nak) << 5 |
                                   static_cast<unsigned>(code));
}

constexpr std::uint8_t rnr_syndrome(std::uint8_t timer_code) {
  return static_cast<std::uint8_t>(static_cast<unsigned>(SyndromeKind::rnr) << 5 |
                                   (timer_code & kSyndromeValueMask));
}

/// How long an RNR NAK with this timer code lets the requester wait (IBTA table 45).
constexpr std::chrono::nanoseconds rnr_wait(std::uint8_t timer_code) {
  constexpr std::array<std::uint32_t, 32> ten_microseconds{
      65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
      48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
      2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return std::chrono::microseconds(10) * ten_microseconds[value_of(timer_code)];
}

} // namespace weir::wire
