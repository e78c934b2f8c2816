// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/c_calls.hpp"

#include "host/collective/ring_blocks.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <vector>

namespace weir::host::c {
namespace {

/// Numbers that are no type or operation stay so when they are cut to a byte.
template <typename Enum>
Enum from_number(unsigned number) {
  return static_cast<Enum>(std::min(number, 255U));
}

} // namespace

Call call_of(CallKind kind, std::size_t count, weir_data_type type, weir_operation operation,
             std::uint16_t root) {
  const bool is_average = operation == WEIR_AVERAGE;
  return {.kind = kind,
          .count = count,
          .type = from_number<DataType>(type),
          .operation = from_number<Operation>(is_average ? WEIR_SUM : operation),
          .finish = is_average ? Finish::average : Finish::none,
          .root = root};
}

std::optional<Factor> take_factor(weir_group* group, Call& call, weir_operation operation) {
  const auto scaled = object_at(group, "group").scaled_sums.find(operation);
  if (!scaled) {
    return std::nullopt;
  }
  if (scaled->type != call.type) {
    throw std::invalid_argument(fmt::format("operation: found a scaled sum of {}; allowed: of {}",
                                            name_of(scaled->type), name_of(call.type)));
  }
  call.operation = Operation::sum;
  return scaled->factor;
}

std::size_t operator_number(const Call& call) {
  const auto operation = static_cast<unsigned>(call.operation);
  if (operation < kFirstOperator) {
    throw std::invalid_argument(fmt::format("operation: found {} of WEIR_AS_OPERATOR; allowed: "
                                            "WEIR_OPERATOR(0), …",
                                            operation));
  }
  return operation - kFirstOperator;
}

namespace {

weir_status start(weir_group* group, const void* in, void* out, const Call& call,
                  weir_request** request) {
  return started(request, [&] { return object_at(group, "group").group.start(in, out, call); });
}

weir_status start_by_operator(weir_group* group, const void* in, void* out, const Call& call,
                              weir_request** request) {
  return started(request, [&] {
    const std::size_t number = operator_number(call);
    return object_at(group, "group").group.start_by_operator(in, out, call, number);
  });
}

/// A reduction, by an operation that may be the group's own.
weir_status start_reduction(weir_group* group, const void* in, void* out, Call call,
                            weir_operation operation, weir_request** request) {
  if (call.type == kAsOperator) {
    return start_by_operator(group, in, out, call, request);
  }
  return started(request, [&] {
    const auto factor = take_factor(group, call, operation);
    return factor ? group->group.start_scaled(in, out, call, *factor)
                  : group->group.start(in, out, call);
  });
}

} // namespace
} // namespace weir::host::c

using namespace weir;
using namespace weir::host::c;

const char* weir_ring_schedule(weir_data_type type) {
  return host::name_of(host::ring_schedule(from_number<DataType>(type))).data();
}

int weir_is_reducible(weir_data_type type, weir_operation operation) {
  const host::Call call = call_of(host::CallKind::all_reduce, 0, type, operation);
  return is_reducible(call.type, call.operation) ? 1 : 0;
}

weir_status weir_make_scaled_sum(weir_group* group, weir_data_type type, const void* factor,
                                 weir_operation* operation) {
  return guarded([&] {
    object_at(operation, "operation");
    host::ScaledSums::ScaledSum sum{.type = from_number<DataType>(type)};
    const std::size_t bytes = element_size(sum.type);
    if (bytes == 0) {
      throw std::invalid_argument(fmt::format("type: found {}; allowed: 0 .. {}",
                                              static_cast<unsigned>(type), kDataTypes - 1));
    }
    std::memcpy(sum.factor.data(), &object_at(static_cast<const char*>(factor), "factor"), bytes);
    *operation = static_cast<weir_operation>(object_at(group, "group").scaled_sums.add(sum));
    return WEIR_OK;
  });
}

weir_status weir_drop_operation(weir_group* group, weir_operation operation) {
  return guarded([&] {
    object_at(group, "group").scaled_sums.remove(operation);
    return WEIR_OK;
  });
}

weir_status weir_start_all_reduce(weir_group* group, const void* in, void* out, size_t count,
                                  weir_data_type type, weir_operation operation,
                                  weir_request** request) {
  const host::Call call = call_of(host::CallKind::all_reduce, count, type, operation);
  return start_reduction(group, in, out, call, operation, request);
}

weir_status weir_start_all_reduce_coalesced(weir_group* group, const weir_tensor* tensors,
                                            size_t tensor_count, weir_data_type type,
                                            weir_operation operation, weir_request** request) {
  return started(request, [&] {
    std::vector<host::Group::Part> parts;
    if (tensor_count != 0) {
      object_at(tensors, "tensors");
    }
    for (const weir_tensor& tensor : std::span(tensors, tensor_count)) {
      parts.push_back({tensor.in, tensor.out, tensor.count});
    }
    const host::Call call = call_of(host::CallKind::all_reduce, 0, type, operation);
    return object_at(group, "group").group.start_all_reduce(parts, call);
  });
}

weir_status weir_start_reduce(weir_group* group, const void* in, void* out, size_t count,
                              weir_data_type type, weir_operation operation, uint16_t root,
                              weir_request** request) {
  const host::Call call = call_of(host::CallKind::reduce, count, type, operation, root);
  return start_reduction(group, in, out, call, operation, request);
}

weir_status weir_start_broadcast(weir_group* group, void* data, size_t count, weir_data_type type,
                                 uint16_t root, weir_request** request) {
  return start(group, data, data, call_of(host::CallKind::broadcast, count, type, WEIR_SUM, root),
               request);
}

weir_status weir_start_all_gather(weir_group* group, const void* in, void* out, size_t count,
                                  weir_data_type type, weir_request** request) {
  return start(group, in, out, call_of(host::CallKind::all_gather, count, type), request);
}

weir_status weir_start_reduce_scatter(weir_group* group, const void* in, void* out, size_t count,
                                      weir_data_type type, weir_operation operation,
                                      weir_request** request) {
  const host::Call call = call_of(host::CallKind::reduce_scatter, count, type, operation);
  return start_reduction(group, in, out, call, operation, request);
}

weir_status weir_start_all_gather_strided(weir_group* group, const void* in, void* out,
                                          size_t count, size_t stride, weir_data_type type,
                                          weir_request** request) {
  return started(request, [&] {
    const host::Call call = call_of(host::CallKind::all_gather, count, type);
    return object_at(group, "group").group.start_strided(in, out, call, stride);
  });
}

weir_status weir_start_reduce_scatter_strided(weir_group* group, const void* in, void* out,
                                              size_t count, size_t stride, weir_data_type type,
                                              weir_operation operation, weir_request** request) {
  return started(request, [&] {
    host::Call call = call_of(host::CallKind::reduce_scatter, count, type, operation);
    const auto factor = take_factor(group, call, operation);
    return group->group.start_strided(in, out, call, stride, factor);
  });
}

weir_status weir_start_barrier(weir_group* group, weir_request** request) {
  return start(group, nullptr, nullptr, call_of(host::CallKind::barrier, 0, WEIR_F32), request);
}

weir_status weir_all_reduce(weir_group* group, const void* in, void* out, size_t count,
                            weir_data_type type, weir_operation operation) {
  return call(weir_start_all_reduce, group, in, out, count, type, operation);
}

weir_status weir_all_reduce_coalesced(weir_group* group, const weir_tensor* tensors,
                                      size_t tensor_count, weir_data_type type,
                                      weir_operation operation) {
  return call(weir_start_all_reduce_coalesced, group, tensors, tensor_count, type, operation);
}

weir_status weir_reduce(weir_group* group, const void* in, void* out, size_t count,
                        weir_data_type type, weir_operation operation, uint16_t root) {
  return call(weir_start_reduce, group, in, out, count, type, operation, root);
}

weir_status weir_broadcast(weir_group* group, void* data, size_t count, weir_data_type type,
                           uint16_t root) {
  return call(weir_start_broadcast, group, data, count, type, root);
}

weir_status weir_all_gather(weir_group* group, const void* in, void* out, size_t count,
                            weir_data_type type) {
  return call(weir_start_all_gather, group, in, out, count, type);
}

weir_status weir_reduce_scatter(weir_group* group, const void* in, void* out, size_t count,
                                weir_data_type type, weir_operation operation) {
  return call(weir_start_reduce_scatter, group, in, out, count, type, operation);
}

weir_status weir_all_gather_strided(weir_group* group, const void* in, void* out, size_t count,
                                    size_t stride, weir_data_type type) {
  return call(weir_start_all_gather_strided, group, in, out, count, stride, type);
}

weir_status weir_reduce_scatter_strided(weir_group* group, const void* in, void* out, size_t count,
                                        size_t stride, weir_data_type type,
                                        weir_operation operation) {
  return call(weir_start_reduce_scatter_strided, group, in, out, count, stride, type, operation);
}

weir_status weir_barrier(weir_group* group) {
  return call(weir_start_barrier, group);
}

weir_status weir_test(weir_request* request) {
  return guarded([&] {
    const bool is_done =
        object_at(request, "request").with_pending([](auto& pending) { return pending.test(); });
    return is_done ? WEIR_OK : still_pending({});
  });
}

weir_status weir_wait_for(weir_request* request, uint32_t timeout_ms) {
  return guarded([&] {
    const std::chrono::milliseconds timeout(timeout_ms);
    return object_at(request, "request").with_pending([&](auto& pending) {
      return pending.wait_for(timeout) ? WEIR_OK : still_pending(pending.waits_for());
    });
  });
}

weir_status weir_wait(weir_request* request) {
  const weir_status status = guarded([&] {
    object_at(request, "request").with_pending([](auto& pending) { pending.wait(); });
    return WEIR_OK;
  });
  if (status != WEIR_INVALID_ARGUMENT) { // it is not over, in a callback
    delete request;
  }
  return status;
}

weir_status weir_cancel(weir_request* request) {
  return guarded([&] {
    const bool is_over =
        object_at(request, "request").with_pending([](auto& pending) { return pending.cancel(); });
    return is_over ? WEIR_OK : still_pending({});
  });
}

weir_status weir_on_done(weir_request* request, weir_done_function function, void* argument) {
  return guarded([&] {
    weir_request& given = object_at(request, "request");
    if (function == nullptr) {
      throw std::invalid_argument("function: found NULL; allowed: one of the caller's");
    }
    const auto callback = [function, argument](const std::optional<host::Error>& error) {
      function(argument, error ? guarded([&]() -> weir_status { throw *error; }) : WEIR_OK);
    };
    given.with_pending([&](auto& pending) { pending.on_done(callback); });
    return WEIR_OK;
  });
}

void weir_release(weir_request* request) {
  if (request != nullptr) {
    weir_wait(request);
  }
}
