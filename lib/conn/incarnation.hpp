// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

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
  static SessionSource counting_from(std::uint32_t first) { return {first, 0}; }

  /// Sessions that nobody can predict without the seed.
  static SessionSource random(std::uint64_t seed) { return {0, seed | 1}; }

  /// A source for another worker: random with `seed` if this one is random. A host that knows the
  /// sessions of one job must not be able to predict those of a job on another worker.
  SessionSource with_seed(std::uint64_t seed) const { return seed_ == 0 ? *this : random(seed); }

  std::uint32_t draw(std::uint32_t last) {
    std::uint32_t session = next();
    while (session == 0 || session == last) {
      session = next();
    }
    return session;
  }

 private:
  SessionSource(std::uint32_t count, std::uint64_t seed) : count_(count), seed_(seed) {}

  /// The next value of SplitMix64 (Steele, Lea, Flood, OOPSLA'14), or the next number.
  std::uint32_t next() {
    if (seed_ == 0) {
      return count_++;
    }
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t mixed = state_ ^ seed_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return static_cast<std::uint32_t>(mixed >> 32);
  }

  std::uint32_t count_;
  std::uint64_t seed_; // 0: count
  std::uint64_t state_ = 0;
};

} // namespace weir::conn
