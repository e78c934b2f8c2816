// SPDX-License-Identifier: BSD-3-Clause
#include "worker/call_choice.hpp"

#include "worker/call_buffers.hpp"

namespace weir::app {
namespace {

void add_reductions(std::vector<host::Call>& calls, host::Call call,
                    std::span<const Reduction> reductions) {
  for (const Reduction& reduction : reductions) {
    if (is_reducible(call.type, reduction.operation)) {
      call.operation = reduction.operation;
      call.finish = reduction.finish;
      calls.push_back(call);
    }
  }
}

} // namespace

std::vector<host::Call> kinds_of_calls(const CallChoice& choice) {
  std::vector<host::Call> calls;
  for (const host::CallKind kind : choice.kinds) {
    if (!host::Call{.kind = kind}.has_data()) {
      calls.push_back({.kind = kind});
      continue;
    }
    for (const DataType type : choice.types) {
      host::Call call{.kind = kind, .type = type};
      call.root = call.has_root() ? choice.root : std::uint16_t{0};
      if (call.reduces()) {
        add_reductions(calls, call, choice.reductions);
      } else {
        calls.push_back(call);
      }
    }
  }
  return calls;
}

std::uint64_t count_within(const host::Call& call, std::uint16_t world, std::uint64_t bytes) {
  return bytes / element_size(call.type) / call.shares(world);
}

std::vector<host::Call> with_sizes(const host::Call& call, std::uint16_t world,
                                   std::span<const std::uint64_t> sizes) {
  if (!call.has_data()) {
    return {call};
  }
  std::vector<host::Call> calls;
  std::uint64_t last = 0;
  for (const std::uint64_t bytes : sizes) {
    host::Call sized = call;
    sized.count = count_within(call, world, bytes);
    if (sized.count != last) {
      calls.push_back(sized);
      last = sized.count;
    }
  }
  return calls;
}

} // namespace weir::app
