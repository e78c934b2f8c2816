// SPDX-License-Identifier: BSD-3-Clause
#include "worker/sparse_values.hpp"

#include "host/collective/scaling.hpp"
#include "op/kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

namespace weir::app {
namespace {

constexpr std::size_t kChunkUnits = 4096;

/// Draws are the values of other tensors than those that are reduced.
constexpr std::uint32_t kDraws = 1U << 31;

/// The dense reduction, some units at a time.
class DenseReference {
 public:
  DenseReference(const SparseValues& values, const FoldTree& tree)
      : values_(values), tree_(tree),
        reduce_(op::reference_kernel(values.call.type, values.call.operation)) {}

  void compute(std::uint64_t first, std::size_t units) {
    const std::size_t bytes = units * values_.unit_bytes();
    std::vector<std::vector<std::byte>> tensors(tree_.ranks(), std::vector<std::byte>(bytes));
    std::vector<const std::byte*> inputs;
    is_there_.assign(units, false);
    for (std::uint16_t rank = 0; rank < tree_.ranks(); ++rank) {
      fill_present(tensors[rank], rank, first, units);
      inputs.push_back(tensors[rank].data());
    }
    data_.resize(bytes);
    tree_.reduce(data_, inputs, reduce_);
    if (values_.call.finish == host::Finish::average) {
      host::make_average({reinterpret_cast<std::uint8_t*>(data_.data()), bytes}, values_.call.type,
                         tree_.ranks());
    }
  }

  /// Whether some rank has the unit; they count from the first one computed.
  bool is_there(std::size_t unit) const { return is_there_[unit]; }

  std::span<const std::byte> unit(std::size_t unit) const {
    return std::span(data_).subspan(unit * values_.unit_bytes(), values_.unit_bytes());
  }

 private:
  void fill_present(std::vector<std::byte>& tensor, std::uint16_t rank, std::uint64_t first,
                    std::size_t units) {
    const std::vector<bool> presence = values_.presence(rank, first, units);
    fill_tensor(tensor, values_.id, rank, first * values_.unit(), values_.call.type);
    for (std::size_t unit = 0; unit < units; ++unit) {
      if (presence[unit]) {
        is_there_[unit] = true;
      } else {
        std::memset(&tensor[unit * values_.unit_bytes()], 0, values_.unit_bytes());
      }
    }
  }

  const SparseValues& values_;
  const FoldTree& tree_;
  op::ReduceKernel reduce_;
  std::vector<bool> is_there_;
  std::vector<std::byte> data_;
};

/// Finds units in a result, in ascending order.
class ResultReader {
 public:
  ResultReader(const host::SparseResult& result, const SparseValues& values)
      : result_(result), unit_bytes_(values.unit_bytes()),
        units_per_block_(result.block / values.unit()) {}

  /// Empty if the result has it not.
  std::span<const std::byte> find(std::uint64_t unit) {
    const auto block = static_cast<std::int64_t>(unit / units_per_block_);
    while (at_ != result_.indices.size() && result_.indices[at_] < block) {
      ++at_;
    }
    if (at_ == result_.indices.size() || result_.indices[at_] != block) {
      return {};
    }
    const std::size_t place = at_ * units_per_block_ + unit % units_per_block_;
    return std::as_bytes(std::span(result_.values)).subspan(place * unit_bytes_, unit_bytes_);
  }

 private:
  const host::SparseResult& result_;
  std::size_t unit_bytes_;
  std::uint64_t units_per_block_;
  std::size_t at_ = 0;
};

/// The tensor's end may cut its last unit.
std::string compare_unit(std::span<const std::byte> found, std::span<const std::byte> expected,
                         const SparseValues& values, std::uint64_t unit) {
  const std::size_t element = element_size(values.call.type);
  const std::uint64_t first = unit * values.unit();
  const std::size_t elements = std::min(values.unit(), values.call.count - first);
  for (std::size_t i = 0; i < elements; ++i) {
    const auto due = expected.subspan(i * element, element);
    const auto one = found.subspan(i * element, element);
    if (!std::ranges::equal(due, one)) {
      return fmt::format("element {}: expected {:02x}, found {:02x} (bytes in memory)", first + i,
                         fmt::join(due, " "), fmt::join(one, " "));
    }
  }
  return {};
}

} // namespace

std::vector<bool> SparseValues::presence(std::uint16_t rank, std::uint64_t first,
                                         std::size_t units) const {
  std::vector<std::uint64_t> draws(units);
  fill_tensor(std::as_writable_bytes(std::span(draws)), {id.epoch, id.repetition | kDraws}, rank,
              first, DataType::u64);
  std::vector<bool> presence;
  for (const std::uint64_t draw : draws) {
    presence.push_back(std::ldexp(static_cast<double>(draw >> 11), -53) < density);
  }
  return presence;
}

std::vector<std::int64_t> SparseValues::indices_of(std::uint16_t rank) const {
  std::vector<std::int64_t> indices;
  for (std::uint64_t first = 0; first < units(); first += kChunkUnits) {
    const std::vector<bool> chunk =
        presence(rank, first, std::min<std::uint64_t>(kChunkUnits, units() - first));
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      if (chunk[i]) {
        indices.push_back(static_cast<std::int64_t>(first + i));
      }
    }
  }
  return indices;
}

std::vector<std::byte> SparseValues::values_of(std::uint16_t rank,
                                               const std::vector<std::int64_t>& indices) const {
  std::vector<std::byte> values(indices.size() * unit_bytes());
  for (std::size_t i = 0; i < indices.size(); ++i) {
    fill_tensor(std::span(values).subspan(i * unit_bytes(), unit_bytes()), id, rank,
                static_cast<std::uint64_t>(indices[i]) * unit(), call.type);
  }
  return values;
}

std::string find_sparse_mismatch(const host::SparseResult& result, const SparseValues& values,
                                 const FoldTree& tree) {
  DenseReference reference(values, tree);
  ResultReader reader(result, values);
  const bool is_exact = result.block == values.unit() && result.form != host::SparseForm::dense;
  for (std::uint64_t first = 0; first < values.units(); first += kChunkUnits) {
    const std::size_t units = std::min<std::uint64_t>(kChunkUnits, values.units() - first);
    reference.compute(first, units);
    for (std::size_t i = 0; i < units; ++i) {
      const std::span<const std::byte> found = reader.find(first + i);
      if (found.empty() ? reference.is_there(i) : is_exact && !reference.is_there(i)) {
        return fmt::format("block {}: {}", first + i,
                           found.empty() ? "missing" : "there, and no rank has it");
      }
      if (std::string wrong = found.empty()
                                  ? std::string()
                                  : compare_unit(found, reference.unit(i), values, first + i);
          !wrong.empty()) {
        return wrong;
      }
    }
  }
  return {};
}

} // namespace weir::app
