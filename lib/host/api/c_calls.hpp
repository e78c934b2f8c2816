// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// How the C API starts a call.

#include "host/api/c_errors.hpp"
#include "host/api/c_objects.hpp"
#include "host/api/within_callback.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace weir::host::c {

/// What the ranks must agree on.
Call call_of(CallKind kind, std::size_t count, weir_data_type type,
             weir_operation operation = WEIR_SUM, std::uint16_t root = 0);

/// If the operation is the group's own, makes the call a sum and says with which factor.
std::optional<Factor> take_factor(weir_group* group, Call& call, weir_operation operation);

/// Of a call with WEIR_AS_OPERATOR: k of WEIR_OPERATOR(k). Throws std::invalid_argument for any
/// other operation.
std::size_t operator_number(const Call& call);

/// Hands out what `start_it` returns.
template <typename Start>
weir_status started(weir_request** request, Start start_it) {
  return guarded([&] {
    object_at(request, "request") = nullptr;
    *request = new weir_request{start_it()};
    return WEIR_OK;
  });
}

/// Starts a call and waits for it.
template <typename... Parameters, typename... Arguments>
weir_status call(weir_status (*start_it)(Parameters...), Arguments... arguments) {
  weir_request* request = nullptr;
  const weir_status status = guarded([&] {
    refuse_within_callback("a call that waits");
    return start_it(arguments..., &request);
  });
  return status == WEIR_OK ? weir_wait(request) : status;
}

} // namespace weir::host::c
