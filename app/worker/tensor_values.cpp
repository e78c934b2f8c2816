// SPDX-License-Identifier: BSD-3-Clause
#include "worker/tensor_values.hpp"

#include "host/collective/scaling.hpp"
#include "op/kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <vector>

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

namespace {

/// The result of a call, block by block.
class Reference {
 public:
  Reference(const TensorId& id, const host::Call& call, const host::Place& place,
            std::span<const FoldTree> trees)
      : id_(id), call_(call), place_(place), trees_(trees),
        reduce_(call.reduces() ? op::reference_kernel(call.type, call.operation) : nullptr),
        inputs_(call.reduces() ? place.world : 0, std::vector<std::byte>(kBlockBytes)) {}

  /// Elements first, first+1, … of the result, as many as fit into `bytes`.
  void write(std::span<std::byte> bytes, std::uint64_t first) {
    const host::CallRow& row = call_.row();
    if (row.contributes == op::Who::root) {
      return fill_tensor(bytes, id_, call_.root, first, call_.type);
    }
    if (row.gets == host::Amount::share_of_each) {
      return gather(bytes, first);
    }
    const bool is_cut = row.brings == host::Amount::share_of_each;
    return reduce(bytes, first + (is_cut ? place_.rank * call_.count : 0));
  }

 private:
  void reduce(std::span<std::byte> bytes, std::uint64_t first) {
    for (std::uint16_t rank = 0; rank < place_.world; ++rank) {
      fill_tensor(std::span(inputs_[rank]).first(bytes.size()), id_, rank, first, call_.type);
    }
    const std::size_t begin = first * element_size(call_.type);
    for (std::size_t ring = 0; ring < trees_.size(); ++ring) {
      const std::size_t from = std::clamp(part_begin(ring), begin, begin + bytes.size()) - begin;
      const std::size_t to = std::clamp(part_begin(ring + 1), begin, begin + bytes.size()) - begin;
      fold(trees_[ring], bytes.subspan(from, to - from), from);
    }
    if (call_.finish == host::Finish::average) {
      host::make_average({reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()}, call_.type,
                         place_.world);
    }
  }

  /// Where a ring's part of the sums begins, in bytes.
  std::size_t part_begin(std::size_t ring) const {
    return host::share_begin(call_.shares(place_.world) * call_.count * element_size(call_.type),
                             ring, trees_.size());
  }

  /// What is in the inputs' blocks from `at` on.
  void fold(const FoldTree& tree, std::span<std::byte> bytes, std::size_t at) const {
    if (bytes.empty()) {
      return;
    }
    std::vector<const std::byte*> pointers;
    for (const std::vector<std::byte>& input : inputs_) {
      pointers.push_back(input.data() + at);
    }
    tree.reduce(bytes, pointers, reduce_);
  }

  void gather(std::span<std::byte> bytes, std::uint64_t first) {
    const std::size_t element = element_size(call_.type);
    while (!bytes.empty()) {
      const std::uint64_t within = first % call_.count;
      const std::size_t count = std::min(bytes.size() / element, call_.count - within);
      const auto rank = static_cast<std::uint16_t>(first / call_.count);
      fill_tensor(bytes.first(count * element), id_, rank, within, call_.type);
      bytes = bytes.subspan(count * element);
      first += count;
    }
  }

  const TensorId id_;
  const host::Call call_;
  const host::Place place_;
  const std::span<const FoldTree> trees_;
  op::ReduceKernel reduce_;
  std::vector<std::vector<std::byte>> inputs_; // a block of each rank's
};

/// Adds the wrong elements of a block, whose first element has this index.
void note_mismatches(Mismatches& mismatches, std::span<const std::byte> found,
                     std::span<const std::byte> expected, std::uint64_t index, DataType type) {
  if (std::ranges::equal(found, expected)) {
    return; // as almost always
  }
  const std::size_t element = element_size(type);
  for (std::size_t at = 0; at < found.size(); at += element, ++index) {
    const auto one = found.subspan(at, element);
    const auto due = expected.subspan(at, element);
    if (std::ranges::equal(one, due)) {
      continue;
    }
    if (mismatches.count++ == 0) {
      mismatches.first = {index, describe(due, type), describe(one, type)};
    }
  }
}

/// Where a ring that carries the whole call is meant, `trees` is its tree alone.
Mismatches mismatches_by(std::span<const FoldTree> trees, std::span<const std::byte> result,
                         const TensorId& id, const host::Call& call, const host::Place& place) {
  Mismatches mismatches;
  Reference reference(id, call, place, trees);
  std::vector<std::byte> block(kBlockBytes);
  for (std::size_t at = 0; at < result.size(); at += kBlockBytes) {
    const auto found = result.subspan(at, std::min(kBlockBytes, result.size() - at));
    const auto expected = std::span(block).first(found.size());
    const std::uint64_t index = at / element_size(call.type);
    reference.write(expected, index);
    note_mismatches(mismatches, found, expected, index, call.type);
  }
  return mismatches;
}

} // namespace

Mismatches find_mismatches(std::span<const std::byte> result, const TensorId& id,
                           const host::Call& call, const host::Place& place,
                           std::span<const FoldTree> trees) {
  if (host::cuts_segments(call, place)) {
    return mismatches_by(trees, result, id, call, place);
  }
  Mismatches least{.count = std::numeric_limits<std::uint64_t>::max()};
  for (std::size_t ring = 0; ring < trees.size() && least.count != 0; ++ring) {
    const Mismatches these = mismatches_by(trees.subspan(ring, 1), result, id, call, place);
    least = these.count < least.count ? these : least;
  }
  return least;
}

} // namespace weir::app
