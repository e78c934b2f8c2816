// SPDX-License-Identifier: BSD-3-Clause
#include "host/collective/scaling.hpp"

#include "op/float_environment.hpp"
#include "op/kernel.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace weir::host {
namespace {

template <typename Element>
Element load(const std::uint8_t* bytes) {
  Element element;
  std::memcpy(&element, bytes, sizeof(Element));
  return element;
}

template <typename Element, typename Change>
void change_each(std::span<std::uint8_t> data, Change change) {
  for (std::size_t at = 0; at < data.size(); at += sizeof(Element)) {
    const Element changed = change(load<Element>(data.data() + at));
    std::memcpy(data.data() + at, &changed, sizeof(Element));
  }
}

template <typename Change>
void change_narrow_floats(std::span<std::uint8_t> data, DataType type, Change change) {
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
    change_each<float>(std::span(wide).first(count * sizeof(float)), change);
    conversions.from_f32(narrow_bytes, wide_bytes, count);
  }
}

/// `change` turns an element of any type into another of that type; of narrow floats it gets f32.
template <typename Change>
void change_all(std::span<std::uint8_t> data, DataType type, Change change) {
  const op::DefaultFloatEnvironment environment; // not the caller's (I8)
  switch (type) {
  case DataType::f32:
    return change_each<float>(data, change);
  case DataType::f64:
    return change_each<double>(data, change);
  case DataType::i8:
    return change_each<std::int8_t>(data, change);
  case DataType::u8:
    return change_each<std::uint8_t>(data, change);
  case DataType::i16:
    return change_each<std::int16_t>(data, change);
  case DataType::u16:
    return change_each<std::uint16_t>(data, change);
  case DataType::i32:
    return change_each<std::int32_t>(data, change);
  case DataType::u32:
    return change_each<std::uint32_t>(data, change);
  case DataType::i64:
    return change_each<std::int64_t>(data, change);
  case DataType::u64:
    return change_each<std::uint64_t>(data, change);
  case DataType::f16:
  case DataType::bf16:
  case DataType::f8e4m3:
  case DataType::f8e5m2:
    return change_narrow_floats(data, type, change);
  }
}

/// Holds every element and every number of ranks.
template <typename Element>
using WithRoom =
    std::conditional_t<std::is_integral_v<Element> && sizeof(Element) < 4, std::int32_t, Element>;

bool is_narrow_float(DataType type) {
  return op::find_conversions(type, op::best_cpu_level()).to_f32 != nullptr;
}

/// The factor as what change_all passes for elements of its type.
Factor widened(const Factor& factor, DataType type) {
  if (!is_narrow_float(type)) {
    return factor;
  }
  Factor wide{};
  op::find_conversions(type, op::best_cpu_level())
      .to_f32(reinterpret_cast<std::byte*>(wide.data()),
              reinterpret_cast<const std::byte*>(factor.data()), 1);
  return wide;
}

} // namespace

void make_average(std::span<std::uint8_t> data, DataType type, std::uint16_t world) {
  change_all(data, type, [world](auto element) {
    using Wide = WithRoom<decltype(element)>;
    return static_cast<decltype(element)>(Wide{element} / static_cast<Wide>(world));
  });
}

void multiply(std::span<std::uint8_t> data, DataType type, const Factor& factor) {
  const Factor wide = widened(factor, type);
  change_all(data, type, [&wide](auto element) {
    using Element = decltype(element);
    const auto by = load<Element>(wide.data());
    if constexpr (std::is_integral_v<Element>) {
      return static_cast<Element>(static_cast<std::uint64_t>(element) *
                                  static_cast<std::uint64_t>(by));
    } else {
      return element * by;
    }
  });
}

} // namespace weir::host
