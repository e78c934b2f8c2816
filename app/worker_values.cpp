// SPDX-License-Identifier: BSD-3-Clause
#include "worker_values.hpp"

#include "op/kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace weir::app {
namespace {

constexpr std::size_t kBlockBytes = 65536; // of each rank, compared at a time

/// Floating point formats: bits of mantissa, exponent bias, width.
struct FloatFormat {
  unsigned mantissa = 0;
  unsigned bias = 0;
  unsigned bits = 0; // 0: an integer
};

FloatFormat float_format(DataType type) {
  switch (type) {
  case DataType::f32:
    return {23, 127, 32};
  case DataType::f64:
    return {52, 1023, 64};
  case DataType::f16:
    return {10, 15, 16};
  case DataType::bf16:
    return {7, 127, 16};
  case DataType::f8e4m3:
    return {3, 7, 8};
  case DataType::f8e5m2:
    return {2, 15, 8};
  default:
    return {};
  }
}

constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::uint64_t element_bits(std::uint64_t hash, const FloatFormat& format) {
  if (format.bits == 0) {
    return hash;
  }
  const std::uint64_t mantissa = hash & ((std::uint64_t{1} << format.mantissa) - 1);
  const std::uint64_t exponent = format.bias - 2 + (hash >> 60 & 3);
  return (hash >> 63) << (format.bits - 1) | exponent << format.mantissa | mantissa;
}

template <std::size_t Bytes>
void fill(std::span<std::byte> bytes, std::uint64_t seed, std::uint64_t first,
          const FloatFormat& format) {
  for (std::size_t at = 0; at < bytes.size(); at += Bytes, ++first) {
    const std::uint64_t bits = element_bits(mix(seed + first), format);
    std::memcpy(bytes.data() + at, &bits, Bytes); // little-endian, as on the wire
  }
}

std::string describe(std::span<const std::byte> element, DataType type) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, element.data(), element.size());
  std::string hex = fmt::format("0x{:0{}x}", bits, 2 * element.size());
  if (type == DataType::f32) {
    return fmt::format("{} ({})", hex, std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  return hex;
}

} // namespace

void fill_tensor(std::span<std::byte> bytes, const TensorId& id, std::uint16_t rank,
                 std::uint64_t first, DataType type) {
  const std::uint64_t seed =
      mix(mix(std::uint64_t{id.epoch} << 32 | id.repetition) + std::uint64_t{rank});
  const FloatFormat format = float_format(type);
  switch (element_size(type)) {
  case 1:
    return fill<1>(bytes, seed, first, format);
  case 2:
    return fill<2>(bytes, seed, first, format);
  case 4:
    return fill<4>(bytes, seed, first, format);
  default:
    return fill<8>(bytes, seed, first, format);
  }
}

std::optional<Mismatch> find_mismatch(std::span<const std::byte> result, const TensorId& id,
                                      std::uint16_t world, DataType type, Operation operation) {
  const op::ReduceKernel reduce = op::reference_kernel(type, operation);
  const std::size_t element = element_size(type);
  std::vector<std::vector<std::byte>> inputs(world, std::vector<std::byte>(kBlockBytes));
  std::vector<const std::byte*> pointers;
  for (const auto& input : inputs) {
    pointers.push_back(input.data());
  }
  std::vector<std::byte> expected(kBlockBytes);
  for (std::size_t at = 0; at < result.size(); at += kBlockBytes) {
    const std::size_t bytes = std::min(kBlockBytes, result.size() - at);
    for (std::uint16_t rank = 0; rank < world; ++rank) {
      fill_tensor(std::span(inputs[rank]).first(bytes), id, rank, at / element, type);
    }
    reduce(expected.data(), pointers.data(), world, bytes);
    const auto found = result.subspan(at, bytes);
    const auto [want, have] = std::mismatch(
        expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(bytes), found.begin());
    if (have != found.end()) {
      const std::size_t index = static_cast<std::size_t>(have - found.begin()) / element;
      return Mismatch{
          at / element + index,
          describe(std::span<const std::byte>(expected).subspan(index * element, element), type),
          describe(found.subspan(index * element, element), type)};
    }
  }
  return std::nullopt;
}

} // namespace weir::app
