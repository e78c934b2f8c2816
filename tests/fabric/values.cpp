// SPDX-License-Identifier: BSD-3-Clause
#include "values.hpp"

#include <bit>
#include <cmath>
#include <cstring>

namespace weir::fabric {
namespace {

constexpr std::uint32_t kCanonicalNan = 0x7fc00000;

/// splitmix64's finaliser.
std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

std::uint64_t hash_of(const TensorKey& key) {
  std::uint64_t hash = mix(key.ring + 0x9e3779b97f4a7c15);
  hash = mix(hash ^ key.nonce);
  hash = mix(hash ^ key.tensor);
  return mix(hash ^ key.rank);
}

std::uint32_t special_float(std::uint64_t hash) {
  constexpr std::uint32_t specials[] = {0x00000000, 0x80000000, 0x7f800000, 0xff800000,
                                        0x7fc12345, 0xff800001, 0x00000001, 0x807fffff};
  return specials[hash % std::size(specials)];
}

std::uint32_t element(std::uint64_t hash, DataType type) {
  if (type == DataType::i32) {
    return static_cast<std::uint32_t>(hash);
  }
  if ((hash >> 56) == 0) {
    return special_float(hash);
  }
  const auto exponent = static_cast<std::uint32_t>(127 - 12 + (hash >> 40) % 25);
  return (static_cast<std::uint32_t>(hash) & 0x807fffff) | exponent << 23;
}

std::uint32_t fold_integers(std::uint32_t total, std::uint32_t value, Operation operation) {
  const auto a = static_cast<std::int32_t>(total);
  const auto b = static_cast<std::int32_t>(value);
  switch (operation) {
  case Operation::min:
    return b < a ? value : total;
  case Operation::max:
    return b > a ? value : total;
  default:
    return total + value;
  }
}

std::uint32_t fold_floats(std::uint32_t total, std::uint32_t value, Operation operation) {
  const auto a = std::bit_cast<float>(total);
  const auto b = std::bit_cast<float>(value);
  if (operation == Operation::sum) {
    return std::bit_cast<std::uint32_t>(a + b);
  }
  if (std::isnan(a) || std::isnan(b)) {
    return kCanonicalNan;
  }
  const bool takes_b = operation == Operation::min ? b < a : b > a;
  return takes_b ? value : total;
}

} // namespace

void fill(std::span<std::uint8_t> data, DataType type, const TensorKey& key) {
  const std::uint64_t base = hash_of(key);
  for (std::size_t at = 0; at < data.size(); at += sizeof(std::uint32_t)) {
    const std::uint32_t value = element(mix(base + at), type);
    std::memcpy(data.data() + at, &value, sizeof value);
  }
}

std::vector<std::uint8_t> fold(std::size_t bytes, DataType type, Operation operation, TensorKey key,
                               std::uint16_t world) {
  std::vector<std::uint8_t> total(bytes);
  std::vector<std::uint8_t> data(bytes);
  key.rank = 0;
  fill(total, type, key);
  for (key.rank = 1; key.rank < world; ++key.rank) {
    fill(data, type, key);
    for (std::size_t at = 0; at < bytes; at += sizeof(std::uint32_t)) {
      std::uint32_t a = 0;
      std::uint32_t b = 0;
      std::memcpy(&a, total.data() + at, sizeof a);
      std::memcpy(&b, data.data() + at, sizeof b);
      a = type == DataType::i32 ? fold_integers(a, b, operation) : fold_floats(a, b, operation);
      std::memcpy(total.data() + at, &a, sizeof a);
    }
  }
  for (std::size_t at = 0; type == DataType::f32 && at < bytes; at += sizeof(std::uint32_t)) {
    std::uint32_t value = 0;
    std::memcpy(&value, total.data() + at, sizeof value);
    if (std::isnan(std::bit_cast<float>(value))) {
      std::memcpy(total.data() + at, &kCanonicalNan, sizeof kCanonicalNan);
    }
  }
  return total;
}

} // namespace weir::fabric
