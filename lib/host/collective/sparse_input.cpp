// SPDX-License-Identifier: BSD-3-Clause
#include "host/collective/sparse_input.hpp"

#include "op/float_environment.hpp"
#include "op/kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace weir::host {
namespace {

void check(const SparseTensor& tensor) {
  if (tensor.indices.empty()) {
    return;
  }
  if (tensor.indices.data() == nullptr || tensor.values == nullptr) {
    throw std::invalid_argument(fmt::format("{}: found NULL; allowed: memory for {} of them",
                                            tensor.values == nullptr ? "values" : "indices",
                                            tensor.indices.size()));
  }
  const std::uint64_t units = units_of(tensor.count, tensor.unit());
  const auto wrong = std::ranges::find_if(tensor.indices, [&](std::int64_t index) {
    return std::cmp_greater_equal(index, units) || index < 0;
  });
  if (wrong != tensor.indices.end()) {
    const std::string allowed =
        units == 0 ? "none, as the tensor is empty" : fmt::format("0 .. {}", units - 1);
    throw std::invalid_argument(fmt::format("indices[{}]: found {}; allowed: {}",
                                            wrong - tensor.indices.begin(), *wrong, allowed));
  }
}

} // namespace

SparseInput::SparseInput(const SparseTensor& tensor, DataType type, Operation operation,
                         const std::optional<Factor>& factor)
    : unit_bytes_(tensor.unit() * element_size(type)), indices_(tensor.indices),
      values_(tensor.values) {
  check(tensor);
  if (factor && !indices_.empty()) {
    own_values_.assign(values_, values_ + indices_.size() * unit_bytes_);
    multiply(own_values_, type, *factor);
    values_ = own_values_.data();
  }
  const bool is_coalesced =
      std::ranges::adjacent_find(indices_, std::greater_equal()) == indices_.end();
  if (!is_coalesced) {
    merge(type, operation);
  }
}

void SparseInput::merge(DataType type, Operation operation) {
  const op::DefaultFloatEnvironment environment; // not the caller's (I8)
  const op::ReduceKernel fold = op::find_kernel(type, operation, op::best_cpu_level());
  std::vector<std::size_t> order(indices_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [this](std::size_t position) { return indices_[position]; });
  std::vector<std::int64_t> indices;
  std::vector<std::uint8_t> values;
  std::vector<const std::byte*> same; // units with the same index
  for (std::size_t begin = 0; begin < order.size(); begin += same.size()) {
    const std::int64_t index = indices_[order[begin]];
    same.clear();
    for (std::size_t i = begin; i < order.size() && indices_[order[i]] == index; ++i) {
      same.push_back(reinterpret_cast<const std::byte*>(unit_at(order[i])));
    }
    indices.push_back(index);
    values.resize(values.size() + unit_bytes_);
    auto* const unit = reinterpret_cast<std::byte*>(values.data() + values.size() - unit_bytes_);
    if (same.size() == 1) {
      std::copy_n(same.front(), unit_bytes_, unit);
    } else {
      fold(unit, same.data(), static_cast<unsigned>(same.size()), unit_bytes_, {});
    }
  }
  own_indices_ = std::move(indices);
  own_values_ = std::move(values);
  indices_ = own_indices_;
  values_ = own_values_.data();
}

} // namespace weir::host
