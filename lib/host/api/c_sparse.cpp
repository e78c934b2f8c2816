// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/c_calls.hpp"
#include "host/api/c_structs.hpp"
#include "host/collective/sparse_input.hpp"
#include "host/collective/sparse_outcome.hpp"

#include <algorithm>

using namespace weir;
using namespace weir::host::c;

namespace {

/// Defaults of fields that a caller's shorter struct lacks.
weir_sparse_tensor default_sparse_tensor() {
  return {.size = sizeof(weir_sparse_tensor),
          .count = 0,
          .indices = nullptr,
          .values = nullptr,
          .index_count = 0,
          .block_elements = 1};
}

host::SparseTensor translate(const weir_sparse_tensor& tensor) {
  return {.count = tensor.count,
          .block = tensor.block_elements,
          .indices = {tensor.indices, tensor.index_count},
          .values = static_cast<const std::uint8_t*>(tensor.values)};
}

/// Null while the call is under way. Throws the error that ended it.
const host::SparseResult* find_result(const weir_sparse_result* result) {
  return object_at(result, "result").outcome->find();
}

weir_sparse_view view_of(const host::SparseResult& result) {
  return {.size = sizeof(weir_sparse_view),
          .indices = result.indices.data(),
          .values = result.values.data(),
          .index_count = result.indices.size(),
          .block_elements = result.block,
          .is_dense = result.form == host::SparseForm::dense ? 1U : 0U,
          .reserved = 0,
          .exchanged_bytes = result.exchanged_bytes};
}

} // namespace

weir_status weir_start_sparse_all_reduce(weir_group* group, const weir_sparse_tensor* tensor,
                                         weir_data_type type, weir_operation operation,
                                         weir_sparse_result** result, weir_request** request) {
  if (result != nullptr) { // also if it is `request` that is NULL
    *result = nullptr;
  }
  return started(request, [&] {
    object_at(result, "result");
    const weir_sparse_tensor read = read_struct("tensor", tensor, default_sparse_tensor());
    host::Call call = call_of(host::CallKind::sparse_all_reduce, read.count, type, operation);
    const auto factor = take_factor(group, call, operation);
    const host::Group::SparseCall started =
        group->group.start_sparse(translate(read), call, factor);
    *result = new weir_sparse_result{started.result};
    return started.pending;
  });
}

weir_status weir_sparse_all_reduce(weir_group* group, const weir_sparse_tensor* tensor,
                                   weir_data_type type, weir_operation operation,
                                   weir_sparse_result** result) {
  const weir_status status =
      call(weir_start_sparse_all_reduce, group, tensor, type, operation, result);
  if (status != WEIR_OK && result != nullptr) {
    weir_sparse_result_free(*result);
    *result = nullptr;
  }
  return status;
}

weir_status weir_sparse_result_read(const weir_sparse_result* result, weir_sparse_view* view) {
  return guarded([&] {
    const std::size_t size = size_of("view", view);
    const host::SparseResult* const found = find_result(result);
    if (found == nullptr) {
      return still_pending({});
    }
    write_struct(view, size, view_of(*found));
    return WEIR_OK;
  });
}

weir_status weir_sparse_result_copy(const weir_sparse_result* result, int64_t* indices,
                                    void* values, size_t capacity) {
  return guarded([&] {
    const host::SparseResult* const found = find_result(result);
    if (found == nullptr) {
      return still_pending({});
    }
    if (capacity < found->indices.size()) {
      throw std::invalid_argument(fmt::format("capacity: found {}; allowed: {} or more, the "
                                              "result's indices",
                                              capacity, found->indices.size()));
    }
    if (!found->indices.empty()) {
      std::ranges::copy(found->indices, &object_at(indices, "indices"));
      std::ranges::copy(found->values, &object_at(static_cast<std::uint8_t*>(values), "values"));
    }
    return WEIR_OK;
  });
}

void weir_sparse_result_free(weir_sparse_result* result) {
  delete result;
}
