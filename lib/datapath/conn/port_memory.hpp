// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace weir::conn {

/// Ports of a switch; as many as a set of ports has bits.
inline constexpr std::uint16_t kMostPorts = 64;

/// Names that packets have shown, each with the port that it belongs to. A port has places of its
/// own: what comes by it makes others forget nothing. In a full bucket the name that was noted
/// longest ago makes room. Names come from a keyed hash, so nobody chooses which ones meet.
///
/// All lcores share it without locks. A place is one word of name and time, so a reader sees all of
/// a name or nothing.
class PortMemory {
 public:
  void note(std::uint16_t port, std::uint64_t name, std::uint64_t now_ms) {
    Bucket& bucket = bucket_of(port, name);
    const std::uint64_t noted = named(name) | second_of(now_ms);
    for (std::size_t attempt = 0; attempt < kWays; ++attempt) { // others may write here too
      std::atomic<std::uint64_t>& place = place_for(bucket, name, now_ms);
      std::uint64_t known = place.load(std::memory_order_relaxed);
      if (known == noted || place.compare_exchange_strong(known, noted)) {
        return;
      }
    }
  }

  bool has(std::uint16_t port, std::uint64_t name) const {
    for (const auto& place : bucket_of(port, name)) {
      if (is_named(place.load(std::memory_order_relaxed), name)) {
        return true;
      }
    }
    return false;
  }

  /// Names that a port's places hold at most.
  static constexpr std::size_t kPlaces = 512;

 private:
  static constexpr std::size_t kWays = 8; // a cache line
  static constexpr std::size_t kBuckets = kPlaces / kWays;
  static constexpr std::uint64_t kSeconds = 0xffff; // of a place's word; the rest is the name

  struct alignas(64) Bucket : std::array<std::atomic<std::uint64_t>, kWays> {};

  /// Never 0, which is an empty place.
  static std::uint64_t named(std::uint64_t name) { return (name | (kSeconds + 1)) & ~kSeconds; }

  static bool is_named(std::uint64_t word, std::uint64_t name) {
    return ((word ^ named(name)) & ~kSeconds) == 0;
  }

  static std::uint64_t second_of(std::uint64_t now_ms) { return (now_ms / 1000) & kSeconds; }

  Bucket& bucket_of(std::uint16_t port, std::uint64_t name) const {
    return buckets_[port % kMostPorts * kBuckets + name % kBuckets];
  }

  /// The name's own place, else an empty one, else the one noted longest ago.
  static std::atomic<std::uint64_t>& place_for(Bucket& bucket, std::uint64_t name,
                                               std::uint64_t now_ms) {
    const auto age_of = [&](std::uint64_t word) {
      const std::uint64_t age = (second_of(now_ms) - word) & kSeconds;
      return is_named(word, name) ? kSeconds + 2 : word == 0 ? kSeconds + 1 : age;
    };
    std::atomic<std::uint64_t>* oldest = &bucket.front();
    std::uint64_t greatest = 0;
    for (auto& place : bucket) {
      const std::uint64_t age = age_of(place.load(std::memory_order_relaxed));
      if (age >= greatest) {
        greatest = age;
        oldest = &place;
      }
    }
    return *oldest;
  }

  std::unique_ptr<Bucket[]> buckets_ = std::make_unique<Bucket[]>(kMostPorts * kBuckets);
};

} // namespace weir::conn
