// SPDX-License-Identifier: BSD-3-Clause
#include "wire/siphash.hpp"

#include <bit>
#include <cstddef>

namespace weir::wire {
namespace {

constexpr std::size_t kWordBytes = 8;

/// §2.4 of the paper: the state, and what a round does with it.
struct State {
  std::uint64_t v0, v1, v2, v3;

  explicit State(const HashKey& key)
      : v0(key.first ^ 0x736f6d6570736575), v1(key.second ^ 0x646f72616e646f6d),
        v2(key.first ^ 0x6c7967656e657261), v3(key.second ^ 0x7465646279746573) {}

  void round() {
    v0 += v1;
    v2 += v3;
    v1 = std::rotl(v1, 13) ^ v0;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 = std::rotl(v0, 32);
    v2 += v1;
    v0 += v3;
    v1 = std::rotl(v1, 17) ^ v2;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 = std::rotl(v2, 32);
  }

  void take(std::uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }

  std::uint64_t finish() {
    v2 ^= 0xff;
    for (int i = 0; i < 4; ++i) {
      round();
    }
    return v0 ^ v1 ^ v2 ^ v3;
  }
};

/// Little-endian, up to eight bytes.
std::uint64_t word_of(std::span<const std::uint8_t> bytes) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    word |= std::uint64_t{bytes[i]} << (8 * i);
  }
  return word;
}

} // namespace

std::uint64_t siphash(const HashKey& key, std::span<const std::uint8_t> message) {
  State state(key);
  const std::uint64_t length = message.size();
  for (; message.size() >= kWordBytes; message = message.subspan(kWordBytes)) {
    state.take(word_of(message.first(kWordBytes)));
  }
  state.take(word_of(message) | length << 56);
  return state.finish();
}

} // namespace weir::wire
