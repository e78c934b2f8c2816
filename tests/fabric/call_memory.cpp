// SPDX-License-Identifier: BSD-3-Clause
#include "call_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir::fabric {
namespace {

constexpr std::size_t kGuardBytes = 13; // so that no tensor is aligned
constexpr std::uint8_t kGuard = 0xee;

} // namespace

CallMemory::CallMemory(const CallPlan& plan, const host::Place& place,
                       std::span<const std::uint8_t> given)
    : end_(kGuardBytes) {
  if (plan.parts.empty()) {
    add_tensor(plan, place, plan.call.count);
  }
  for (const std::uint64_t elements : plan.parts) {
    add_tensor(plan, place, elements);
  }
  memory_.assign(end_, kGuard);
  for (const Tensor& tensor : tensors_) {
    std::copy_n(given.begin(), tensor.in_bytes,
                memory_.begin() + static_cast<std::ptrdiff_t>(tensor.in));
    given = given.subspan(tensor.in_bytes);
  }
  before_ = memory_;
  if (!plan.parts.empty()) {
    std::vector<host::TensorList::Tensor> list;
    for (const Tensor& tensor : tensors_) {
      list.push_back({memory_.data() + tensor.in, memory_.data() + tensor.out, tensor.in_bytes});
    }
    list_.emplace(std::move(list));
  }
}

void CallMemory::add_tensor(const CallPlan& plan, const host::Place& place,
                            std::uint64_t elements) {
  CallPlan part = plan;
  part.call.count = elements;
  Tensor tensor{.in = end_,
                .in_bytes = part.given_bytes(place.rank, place.world),
                .out_bytes = part.kept_bytes(place.rank, place.world)};
  const bool is_in_place =
      plan.buffers == Buffers::in_place && tensor.in_bytes != 0 && tensor.out_bytes != 0;
  if (!is_in_place) {
    tensor.out = tensor.in + tensor.in_bytes + kGuardBytes;
    end_ = tensor.out + tensor.out_bytes + kGuardBytes;
  } else {
    const std::size_t own_share = place.rank * part.own_bytes();
    tensor.in += plan.call.kind == host::CallKind::all_gather ? own_share : 0;
    tensor.out = end_ + (plan.call.kind == host::CallKind::reduce_scatter ? own_share : 0);
    end_ += std::max(tensor.in_bytes, tensor.out_bytes) + kGuardBytes;
  }
  tensors_.push_back(tensor);
}

/// Who gives or keeps nothing has no buffer.
host::CallBuffers CallMemory::buffers() {
  if (list_) {
    return {.list = &*list_};
  }
  const Tensor& tensor = tensors_.front();
  return {.in = tensor.in_bytes == 0 ? nullptr : memory_.data() + tensor.in,
          .out = tensor.out_bytes == 0 ? nullptr : memory_.data() + tensor.out};
}

std::optional<std::string> CallMemory::difference(std::span<const std::uint8_t> result) const {
  std::vector<std::uint8_t> due = before_;
  for (const Tensor& tensor : tensors_) {
    std::copy_n(result.begin(), tensor.out_bytes,
                due.begin() + static_cast<std::ptrdiff_t>(tensor.out));
    result = result.subspan(tensor.out_bytes);
  }
  const auto [wrong, right] = std::mismatch(memory_.begin(), memory_.end(), due.begin());
  if (wrong == memory_.end()) {
    return std::nullopt;
  }
  const auto at = static_cast<std::size_t>(wrong - memory_.begin());
  const bool is_result = std::ranges::any_of(tensors_, [at](const Tensor& tensor) {
    return at >= tensor.out && at < tensor.out + tensor.out_bytes;
  });
  return fmt::format("byte {} of its memory, {}, is {:#04x}; due is {:#04x}", at,
                     is_result ? "of its result" : "which the call must not change", *wrong,
                     *right);
}

} // namespace weir::fabric
