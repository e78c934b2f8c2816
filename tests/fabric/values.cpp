// SPDX-License-Identifier: BSD-3-Clause
#include "values.hpp"

#include "narrow_float.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <type_traits>

namespace weir::fabric {
namespace {

/// splitmix64's finaliser.
std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

std::uint64_t hash_of(const DataKey& key) {
  std::uint64_t hash = mix(key.ring + 0x9e3779b97f4a7c15);
  hash = mix(hash ^ key.nonce);
  hash = mix(hash ^ key.call);
  return mix(hash ^ key.rank);
}

/// A float type whose exponent has so many bits that sums of random codes would hardly ever round.
struct WideFloat {
  unsigned bits;
  unsigned mantissa_bits;

  std::uint64_t exponent_mask() const {
    return (std::uint64_t{1} << (bits - 1)) - (std::uint64_t{1} << mantissa_bits);
  }

  /// A zero, an infinity, a NaN of either sign with some payload, or a subnormal.
  std::uint64_t special(std::uint64_t hash) const {
    const std::uint64_t exponent = exponent_mask();
    const std::uint64_t quiet = exponent | std::uint64_t{1} << (mantissa_bits - 1);
    const std::uint64_t magnitudes[] = {0, exponent, quiet | 1, exponent | 1, 1};
    const std::uint64_t sign = (hash >> 8 & 1) << (bits - 1);
    return magnitudes[hash % std::size(magnitudes)] | sign;
  }

  /// From 2^-12 to 2^12, or now and then a special one.
  std::uint64_t temper(std::uint64_t code, std::uint64_t hash) const {
    if ((hash & 0xff) == 0) {
      return special(hash >> 8);
    }
    const std::uint64_t bias = exponent_mask() >> (mantissa_bits + 1);
    const std::uint64_t exponent = bias - 12 + (hash >> 8) % 25;
    return (code & ~exponent_mask()) | exponent << mantissa_bits;
  }
};

void temper_all(std::span<std::uint8_t> data, const WideFloat& type, std::uint64_t base) {
  const std::size_t element = type.bits / 8;
  for (std::size_t at = 0; at < data.size(); at += element) {
    std::uint64_t code = 0;
    std::memcpy(&code, data.data() + at, element);
    code = type.temper(code, mix(base - at - 1));
    std::memcpy(data.data() + at, &code, element);
  }
}

/// Elements that C++ computes with as they are.
template <typename T>
struct Plain {
  using Code = T;

  T decode(T code) const { return code; }

  T encode(T value) const {
    if constexpr (std::is_floating_point_v<T>) {
      return std::isnan(value) ? std::abs(std::numeric_limits<T>::quiet_NaN()) : value;
    }
    return value;
  }
};

/// Elements that are computed with as f32.
template <typename Bits>
struct Narrow {
  using Code = Bits;
  NarrowFloat format;

  float decode(Bits code) const { return format.decode(code); }

  Bits encode(float value) const { return static_cast<Bits>(format.encode(value)); }
};

template <typename T>
T fold_integers(T total, T value, Operation operation) {
  using Wrapping = std::make_unsigned_t<T>;
  const auto a = static_cast<Wrapping>(total);
  const auto b = static_cast<Wrapping>(value);
  switch (operation) {
  case Operation::sum:
    return static_cast<T>(static_cast<Wrapping>(a + b));
  case Operation::min:
    return value < total ? value : total;
  case Operation::max:
    return value > total ? value : total;
  case Operation::product: // u16 would become int, whose product may overflow
    return static_cast<T>(std::uint64_t{a} * std::uint64_t{b});
  case Operation::bitwise_and:
    return static_cast<T>(a & b);
  case Operation::bitwise_or:
    return static_cast<T>(a | b);
  case Operation::bitwise_xor:
    return static_cast<T>(a ^ b);
  }
  return total;
}

template <typename T>
T fold_floats(T total, T value, Operation operation) {
  if (operation == Operation::sum) {
    return total + value;
  }
  if (operation == Operation::product) {
    return total * value;
  }
  if (std::isnan(total) || std::isnan(value)) {
    return std::numeric_limits<T>::quiet_NaN();
  }
  const bool takes_value = operation == Operation::min ? value < total : value > total;
  return takes_value ? value : total;
}

template <typename T>
T fold_two(T total, T value, Operation operation) {
  if constexpr (std::is_floating_point_v<T>) {
    return fold_floats(total, value, operation);
  } else {
    return fold_integers(total, value, operation);
  }
}

template <typename Format>
std::vector<std::uint8_t> fold_as(const Format& format, Operation operation,
                                  const Tensors& tensors) {
  using Code = typename Format::Code;
  std::vector<std::uint8_t> result(tensors.front().size());
  const auto load = [&](std::size_t rank, std::size_t at) {
    Code code{};
    std::memcpy(&code, tensors[rank].data() + at, sizeof code);
    return format.decode(code);
  };
  for (std::size_t at = 0; at < result.size(); at += sizeof(Code)) {
    auto total = load(0, at);
    for (std::size_t rank = 1; rank < tensors.size(); ++rank) {
      total = fold_two(total, load(rank, at), operation);
    }
    const Code code = format.encode(total);
    std::memcpy(result.data() + at, &code, sizeof code);
  }
  return result;
}

} // namespace

void fill(std::span<std::uint8_t> data, DataType type, const DataKey& key) {
  const std::uint64_t base = hash_of(key);
  for (std::size_t at = 0; at < data.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t random = mix(base + at);
    std::memcpy(data.data() + at, &random, std::min(sizeof random, data.size() - at));
  }
  switch (type) {
  case DataType::f32:
    return temper_all(data, {32, 23}, base);
  case DataType::f64:
    return temper_all(data, {64, 52}, base);
  case DataType::bf16:
    return temper_all(data, {16, 7}, base);
  default:
    return;
  }
}

std::vector<std::uint8_t> fold(DataType type, Operation operation, const Tensors& tensors) {
  switch (type) {
  case DataType::f32:
    return fold_as(Plain<float>(), operation, tensors);
  case DataType::f64:
    return fold_as(Plain<double>(), operation, tensors);
  case DataType::i8:
    return fold_as(Plain<std::int8_t>(), operation, tensors);
  case DataType::u8:
    return fold_as(Plain<std::uint8_t>(), operation, tensors);
  case DataType::i16:
    return fold_as(Plain<std::int16_t>(), operation, tensors);
  case DataType::u16:
    return fold_as(Plain<std::uint16_t>(), operation, tensors);
  case DataType::i32:
    return fold_as(Plain<std::int32_t>(), operation, tensors);
  case DataType::u32:
    return fold_as(Plain<std::uint32_t>(), operation, tensors);
  case DataType::i64:
    return fold_as(Plain<std::int64_t>(), operation, tensors);
  case DataType::u64:
    return fold_as(Plain<std::uint64_t>(), operation, tensors);
  case DataType::f16:
    return fold_as(Narrow<std::uint16_t>{kF16}, operation, tensors);
  case DataType::bf16:
    return fold_as(Narrow<std::uint16_t>{kBf16}, operation, tensors);
  case DataType::f8e4m3:
    return fold_as(Narrow<std::uint8_t>{kE4m3}, operation, tensors);
  case DataType::f8e5m2:
    return fold_as(Narrow<std::uint8_t>{kE5m2}, operation, tensors);
  }
  return {};
}

} // namespace weir::fabric
