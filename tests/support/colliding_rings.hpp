// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ring/ring_spec.hpp"

#include <cstdint>
#include <vector>

namespace weir::test {

/// The hash without a key by which rings' pairs of addresses were once found.
struct UnkeyedHash {
  static constexpr std::uint64_t kFirst = 0x9e3779b97f4a7c15;
  static constexpr std::uint64_t kSecond = 0xd6e8feb86659fd93;

  static std::uint64_t mix(const wire::IpAddress& address, std::uint64_t seed) {
    const auto [high, low] = address.words();
    const std::uint64_t hash = (seed ^ high) * kFirst;
    return shifted((shifted(hash) ^ low) * kSecond);
  }

  static std::uint64_t of(const wire::IpAddress& source, const wire::IpAddress& destination) {
    return mix(destination, mix(source, 0));
  }

  /// The address with this upper half whose mix() with this seed is `wanted`.
  static wire::IpAddress address_for(std::uint64_t high, std::uint64_t seed, std::uint64_t wanted) {
    const std::uint64_t hash = (seed ^ high) * kFirst;
    return wire::IpAddress::from_words({high, shifted(hash) ^ shifted(wanted) * inverse(kSecond)});
  }

 private:
  /// Its own inverse.
  static std::uint64_t shifted(std::uint64_t hash) { return hash ^ (hash >> 32); }

  /// Of an odd number, modulo 2^64 (Newton).
  static constexpr std::uint64_t inverse(std::uint64_t odd) {
    std::uint64_t inverse = odd;
    for (int step = 0; step < 6; ++step) {
      inverse *= 2 - odd * inverse;
    }
    return inverse;
  }
};

/// Rings of IPv6 members. Each member and its successor have a hash whose lower half is 0.
inline std::vector<ring::RingSpec> colliding_rings(std::uint32_t rings, std::uint16_t members) {
  constexpr std::uint64_t network = 0xfd; // fd00::/8: private addresses (RFC 4193)
  std::vector<ring::RingSpec> specs;
  std::uint64_t number = 0;
  for (std::uint32_t id = 0; id < rings; ++id) {
    ring::RingSpec spec{.id = id, .members = {}};
    wire::IpAddress last = wire::IpAddress::from_words({network, id + 1});
    for (std::uint16_t member = 0; member < members; ++member) {
      spec.members.push_back({last, {}});
      const std::uint64_t high = network | ++number << 8;
      last = UnkeyedHash::address_for(high, UnkeyedHash::mix(last, 0), number << 32);
    }
    specs.push_back(spec);
  }
  return specs;
}

} // namespace weir::test
