// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "wire/siphash.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

namespace weir::conn {

/// One run of a job on a ring (docs/protocol.md §2a), as its hellos name it.
struct Incarnation {
  std::uint32_t epoch = 0;
  std::uint32_t nonce = 0; // random, not 0

  bool operator==(const Incarnation&) const = default;
};

/// The nonces of a ring's last incarnations, oldest forgotten first.
class RetiredNonces {
 public:
  void add(std::uint32_t nonce) { nonces_[next_++ % kRemembered] = nonce; }

  bool has(std::uint32_t nonce) const {
    return std::find(nonces_.begin(), nonces_.end(), nonce) != nonces_.end();
  }

 private:
  static constexpr std::size_t kRemembered = 16;
  std::array<std::uint32_t, kRemembered> nonces_{}; // 0: none yet
  std::size_t next_ = 0;
};

/// Draws one session for each incarnation: never 0, never the same twice in a row.
class SessionSource {
 public:
  /// Returns `first`, `first` + 1, …: for repeatable tests.
  static SessionSource counting_from(std::uint32_t first) { return {first, std::nullopt}; }

  /// Sessions that nobody can compute without the key, not even from all others that it gave.
  static SessionSource random(const wire::HashKey& key) { return {0, key}; }

  /// A source for another worker: random with `key` if this one is random.
  SessionSource with_key(const wire::HashKey& key) const { return key_ ? random(key) : *this; }

  /// A source for another worker, which `number` tells apart: with this one's key, whose sessions
  /// it does not give.
  SessionSource beside(std::uint16_t number) const {
    return {count_ + (std::uint64_t{number} << 32), key_};
  }

  std::uint32_t draw(std::uint32_t last) {
    std::uint32_t session = next();
    while (session == 0 || session == last) {
      session = next();
    }
    return session;
  }

 private:
  SessionSource(std::uint64_t count, const std::optional<wire::HashKey>& key)
      : count_(count), key_(key) {}

  /// The next number, or its keyed hash.
  std::uint32_t next() {
    const std::uint64_t number = count_++;
    if (!key_) {
      return static_cast<std::uint32_t>(number);
    }
    std::array<std::uint8_t, sizeof number> bytes;
    std::memcpy(bytes.data(), &number, sizeof number);
    return static_cast<std::uint32_t>(wire::siphash(*key_, bytes));
  }

  std::uint64_t count_;
  std::optional<wire::HashKey> key_; // none: count
};

} // namespace weir::conn
