// SPDX-License-Identifier: BSD-3-Clause
#include "host/collective/average.hpp"

#include "op/float_environment.hpp"
#include "op/kernel.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace weir::host {
namespace {

/// `data` may stand at any address. `Wide` holds every element and `world`.
template <typename Element, typename Wide = Element>
void divide(std::span<std::uint8_t> data, std::uint16_t world) {
  for (std::size_t at = 0; at < data.size(); at += sizeof(Element)) {
    Element element;
    std::memcpy(&element, data.data() + at, sizeof(Element));
    element = static_cast<Element>(Wide{element} / static_cast<Wide>(world));
    std::memcpy(data.data() + at, &element, sizeof(Element));
  }
}

void divide_narrow_floats(std::span<std::uint8_t> data, DataType type, std::uint16_t world) {
  constexpr std::size_t kBlock = 1024; // elements
  const op::Conversions conversions = op::find_conversions(type, op::best_cpu_level());
  const std::size_t element = element_size(type);
  std::array<std::uint8_t, kBlock * sizeof(float)> wide;
  for (std::size_t at = 0; at < data.size(); at += kBlock * element) {
    const auto block = data.subspan(at, std::min(kBlock * element, data.size() - at));
    const std::size_t count = block.size() / element;
    auto* const narrow_bytes = reinterpret_cast<std::byte*>(block.data());
    auto* const wide_bytes = reinterpret_cast<std::byte*>(wide.data());
    conversions.to_f32(wide_bytes, narrow_bytes, count);
    divide<float>(std::span(wide).first(count * sizeof(float)), world);
    conversions.from_f32(narrow_bytes, wide_bytes, count);
  }
}

} // namespace

void make_average(std::span<std::uint8_t> sums, DataType type, std::uint16_t world) {
  const op::DefaultFloatEnvironment environment; // not the caller's (I8)
  switch (type) {
  case DataType::f32:
    return divide<float>(sums, world);
  case DataType::f64:
    return divide<double>(sums, world);
  case DataType::i8:
    return divide<std::int8_t, std::int32_t>(sums, world);
  case DataType::u8:
    return divide<std::uint8_t, std::int32_t>(sums, world);
  case DataType::i16:
    return divide<std::int16_t, std::int32_t>(sums, world);
  case DataType::u16:
    return divide<std::uint16_t, std::int32_t>(sums, world);
  case DataType::i32:
    return divide<std::int32_t>(sums, world);
  case DataType::u32:
    return divide<std::uint32_t>(sums, world);
  case DataType::i64:
    return divide<std::int64_t>(sums, world);
  case DataType::u64:
    return divide<std::uint64_t>(sums, world);
  case DataType::f16:
  case DataType::bf16:
  case DataType::f8e4m3:
  case DataType::f8e5m2:
    return divide_narrow_floats(sums, type, world);
  }
}

} // namespace weir::host
