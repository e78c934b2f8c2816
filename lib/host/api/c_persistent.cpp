// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/c_calls.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

/// Calls that are prepared once and started many times.

namespace weir::host::c {
namespace {

using Buffers = std::vector<std::span<std::uint8_t>>;

/// What starts the call, but for the place of the request.
template <typename... Parameters, typename... Arguments>
weir_persistent::Start later(weir_status (*start_it)(Parameters...), Arguments... arguments) {
  return [=](weir_request** request) { return start_it(arguments..., request); };
}

/// Memory that a call reads; over verbs it is registered as all memory is, to be written as well.
std::uint8_t* writable(const void* in) {
  return static_cast<std::uint8_t*>(const_cast<void*>(in));
}

bool contains(std::span<const std::uint8_t> whole, std::span<const std::uint8_t> part) {
  return whole.data() <= part.data() && part.data() + part.size() <= whole.data() + whole.size();
}

/// Not twice what lies in one that is there, as in a call in place.
void add(Buffers& buffers, std::span<std::uint8_t> buffer) {
  const auto has = [&](std::span<const std::uint8_t> known) { return contains(known, buffer); };
  if (buffer.empty() || std::ranges::any_of(buffers, has)) {
    return;
  }
  std::erase_if(buffers,
                [&](std::span<const std::uint8_t> known) { return contains(buffer, known); });
  buffers.push_back(buffer);
}

/// From one rank's elements to the next one's where a buffer has those of all.
std::size_t bytes_of(const Call& call, Amount amount, std::size_t stride, std::uint16_t world) {
  const std::size_t element = bytes_of_element(call.type);
  if (amount == Amount::nothing || call.count == 0) {
    return 0;
  }
  return (amount == Amount::share_of_each ? (world - 1U) * stride + call.count : call.count) *
         element;
}

bool takes_part(op::Who who, const Call& call, std::uint16_t rank) {
  return who == op::Who::everybody || (who == op::Who::root && rank == call.root);
}

/// What this rank's call reads and writes.
Buffers buffers_of(const Group& group, const Call& call, const void* in, void* out,
                   std::size_t stride) {
  const CallRow& row = call.row();
  Buffers buffers;
  if (takes_part(row.contributes, call, group.rank())) {
    add(buffers, {writable(in), bytes_of(call, row.brings, stride, group.world())});
  }
  if (takes_part(row.receives, call, group.rank())) {
    add(buffers, {writable(out), bytes_of(call, row.gets, stride, group.world())});
  }
  return buffers;
}

/// Throws for a reduction that the group can never make. `call` becomes what it is counted by.
void check_reduction(weir_group& group, Call& call, weir_operation operation) {
  if (call.type == kAsOperator) {
    group.group.check_by_operator(call, operator_number(call));
    return;
  }
  take_factor(&group, call, operation);
  group.group.check(call);
}

/// Hands out the call that `make` returns.
template <typename Make>
weir_status prepared(weir_group* group, weir_persistent** persistent, Make make) {
  return guarded([&] {
    object_at(persistent, "persistent") = nullptr;
    auto made = std::make_unique<weir_persistent>(object_at(group, "group").device);
    make(group->group, *made);
    *persistent = made.release();
    return WEIR_OK;
  });
}

weir_status prepare_reduction(weir_group* group, const void* in, void* out, Call call,
                              weir_operation operation, weir_persistent::Start start,
                              weir_persistent** persistent) {
  return prepared(group, persistent, [&](const Group& its_group, weir_persistent& made) {
    check_reduction(*group, call, operation);
    made.buffers = buffers_of(its_group, call, in, out, call.count);
    made.start = std::move(start);
  });
}

weir_status prepare_copy(weir_group* group, const void* in, void* out, const Call& call,
                         weir_persistent::Start start, weir_persistent** persistent) {
  return prepared(group, persistent, [&](const Group& its_group, weir_persistent& made) {
    its_group.check(call);
    made.buffers = buffers_of(its_group, call, in, out, call.count);
    made.start = std::move(start);
  });
}

weir_status prepare_strided(weir_group* group, const void* in, void* out, Call call,
                            std::size_t stride, weir_operation operation,
                            weir_persistent::Start start, weir_persistent** persistent) {
  return prepared(group, persistent, [&](const Group& its_group, weir_persistent& made) {
    take_factor(group, call, operation);
    its_group.check_strided(call, stride);
    made.buffers = buffers_of(its_group, call, in, out, stride);
    made.start = std::move(start);
  });
}

} // namespace
} // namespace weir::host::c

using namespace weir;
using namespace weir::host::c;

weir_status weir_prepare_all_reduce(weir_group* group, const void* in, void* out, size_t count,
                                    weir_data_type type, weir_operation operation,
                                    weir_persistent** persistent) {
  return prepare_reduction(
      group, in, out, call_of(host::CallKind::all_reduce, count, type, operation), operation,
      later(weir_start_all_reduce, group, in, out, count, type, operation), persistent);
}

weir_status weir_prepare_all_reduce_coalesced(weir_group* group, const weir_tensor* tensors,
                                              size_t tensor_count, weir_data_type type,
                                              weir_operation operation,
                                              weir_persistent** persistent) {
  return prepared(group, persistent, [&](const host::Group& its_group, weir_persistent& made) {
    if (tensor_count != 0) {
      object_at(tensors, "tensors");
    }
    host::Call call = call_of(host::CallKind::all_reduce, 0, type, operation);
    const std::vector<weir_tensor> kept(tensors, tensors + tensor_count);
    for (const weir_tensor& tensor : kept) {
      call.count = tensor.count;
      its_group.check(call);
      for (const std::span<std::uint8_t> buffer :
           buffers_of(its_group, call, tensor.in, tensor.out, call.count)) {
        add(made.buffers, buffer);
      }
    }
    made.start = [=](weir_request** request) {
      return weir_start_all_reduce_coalesced(group, kept.data(), kept.size(), type, operation,
                                             request);
    };
  });
}

weir_status weir_prepare_reduce(weir_group* group, const void* in, void* out, size_t count,
                                weir_data_type type, weir_operation operation, uint16_t root,
                                weir_persistent** persistent) {
  return prepare_reduction(
      group, in, out, call_of(host::CallKind::reduce, count, type, operation, root), operation,
      later(weir_start_reduce, group, in, out, count, type, operation, root), persistent);
}

weir_status weir_prepare_broadcast(weir_group* group, void* data, size_t count, weir_data_type type,
                                   uint16_t root, weir_persistent** persistent) {
  return prepare_copy(group, data, data,
                      call_of(host::CallKind::broadcast, count, type, WEIR_SUM, root),
                      later(weir_start_broadcast, group, data, count, type, root), persistent);
}

weir_status weir_prepare_all_gather(weir_group* group, const void* in, void* out, size_t count,
                                    weir_data_type type, weir_persistent** persistent) {
  return prepare_copy(group, in, out, call_of(host::CallKind::all_gather, count, type),
                      later(weir_start_all_gather, group, in, out, count, type), persistent);
}

weir_status weir_prepare_reduce_scatter(weir_group* group, const void* in, void* out, size_t count,
                                        weir_data_type type, weir_operation operation,
                                        weir_persistent** persistent) {
  return prepare_reduction(
      group, in, out, call_of(host::CallKind::reduce_scatter, count, type, operation), operation,
      later(weir_start_reduce_scatter, group, in, out, count, type, operation), persistent);
}

weir_status weir_prepare_all_gather_strided(weir_group* group, const void* in, void* out,
                                            size_t count, size_t stride, weir_data_type type,
                                            weir_persistent** persistent) {
  return prepare_strided(
      group, in, out, call_of(host::CallKind::all_gather, count, type), stride, WEIR_SUM,
      later(weir_start_all_gather_strided, group, in, out, count, stride, type), persistent);
}

weir_status weir_prepare_reduce_scatter_strided(weir_group* group, const void* in, void* out,
                                                size_t count, size_t stride, weir_data_type type,
                                                weir_operation operation,
                                                weir_persistent** persistent) {
  return prepare_strided(
      group, in, out, call_of(host::CallKind::reduce_scatter, count, type, operation), stride,
      operation,
      later(weir_start_reduce_scatter_strided, group, in, out, count, stride, type, operation),
      persistent);
}

weir_status weir_prepare_barrier(weir_group* group, weir_persistent** persistent) {
  return prepare_copy(group, nullptr, nullptr, call_of(host::CallKind::barrier, 0, WEIR_F32),
                      later(weir_start_barrier, group), persistent);
}

weir_status weir_persistent_register(weir_persistent* persistent) {
  return guarded([&] {
    weir_persistent& call = object_at(persistent, "persistent");
    const std::lock_guard lock(call.mutex);
    if (!call.registered.empty()) { // a call under way may use it
      return WEIR_OK;
    }
    std::vector<std::unique_ptr<host::UserMemory>> registered;
    for (const std::span<std::uint8_t> buffer : call.buffers) {
      registered.push_back(call.device->register_memory(buffer));
    }
    call.registered = std::move(registered);
    return WEIR_OK;
  });
}

weir_status weir_start_persistent(weir_persistent* persistent, weir_request** request) {
  return guarded([&] {
    object_at(request, "request") = nullptr;
    weir_persistent& call = object_at(persistent, "persistent");
    const std::lock_guard lock(call.mutex);
    if (!call.last.is_over()) {
      throw std::invalid_argument("persistent: found a call whose last request is not done; "
                                  "allowed: one that uses its buffers no more");
    }
    const weir_status status = call.start(request);
    if (status == WEIR_OK) {
      call.last = std::get<host::Pending>((*request)->pending);
    }
    return status;
  });
}

void weir_persistent_release(weir_persistent* persistent) {
  delete persistent;
}
