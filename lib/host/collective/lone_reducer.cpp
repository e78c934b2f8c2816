// SPDX-License-Identifier: BSD-3-Clause
#include "host/collective/lone_reducer.hpp"

#include "host/base/error.hpp"
#include "op/float_environment.hpp"
#include "op/kernel.hpp"

#include <algorithm>
#include <cstring>

namespace weir::host {
namespace {

constexpr std::size_t kKernelBytes = 16'384; // at once; whole elements of every type

} // namespace

LoneReducer::LoneReducer() : block_(kKernelBytes) {}

void LoneReducer::begin(const Slice& slice) {
  ++finished_;
  if (slice.bytes() == 0) {
    return;
  }
  if (slice.collective != Collective::all_reduce) {
    std::memmove(slice.out, slice.in, slice.bytes());
  } else if (slice.list == nullptr) {
    reduce(slice, slice.in, slice.out, slice.bytes());
  } else {
    for (const TensorList::Tensor& tensor : slice.list->tensors()) {
      reduce(slice, tensor.in, tensor.out, tensor.bytes);
    }
  }
}

/// By the kernel, because a NaN of the result is the canonical one (docs/protocol.md §2).
void LoneReducer::reduce(const Slice& slice, const std::uint8_t* in, std::uint8_t* out,
                         std::size_t bytes) {
  const op::DefaultFloatEnvironment environment; // not the caller's (I8)
  const op::ReduceKernel kernel =
      op::find_kernel(slice.type, slice.operation, op::best_cpu_level());
  for (std::size_t done = 0; done < bytes; done += kKernelBytes) {
    const auto* const input = reinterpret_cast<const std::byte*>(in + done);
    auto* const copy = reinterpret_cast<std::byte*>(out + done);
    kernel(block_.data(), &input, 1, std::min(kKernelBytes, bytes - done), {&copy, 1});
  }
}

Arrival LoneReducer::accept(const IncomingMessage& message) {
  throw Error(ErrorCode::transport_failure, std::nullopt,
              "message " + std::to_string(message.immediate) + " came to a group of one rank");
}

} // namespace weir::host
