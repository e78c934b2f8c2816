// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "wire/address.hpp"

#include <cstdint>

namespace weir::wire {

/// The secret of a table's hash. Without it nobody can choose keys that collide. The default is for
/// tests, simulation and replay, which must do the same each time.
struct HashKey {
  std::uint64_t first = 0x9e3779b97f4a7c15;
  std::uint64_t second = 0xd6e8feb86659fd93;

  /// A new random key on each call, from the kernel's generator. Throws std::system_error.
  static HashKey random();
};

/// The two halves of a product of 128 bits in one.
inline std::uint64_t folded_product(std::uint64_t a, std::uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

/// Mixes the key's secret and two words by 128-bit multiplications.
inline std::uint64_t keyed_hash(const HashKey& key, std::uint64_t a, std::uint64_t b) {
  return folded_product(folded_product(a ^ key.first, b ^ key.second), key.first | 1);
}

/// Of two addresses in this order. The first two products do not wait for each other.
inline std::uint64_t keyed_hash(const HashKey& key, const IpAddress& source,
                                const IpAddress& destination) {
  const auto [source_high, source_low] = source.words();
  const auto [high, low] = destination.words();
  return keyed_hash(key, folded_product(source_high ^ key.first, source_low ^ key.second),
                    folded_product(high ^ key.second, low ^ key.first));
}

} // namespace weir::wire
