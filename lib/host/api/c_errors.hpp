// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// What all of the C API does with errors: none may pass into C.

#include "host/base/error.hpp"
#include "weir/weir.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

namespace weir::host::c {

/// Keeps what weir_last_error tells this thread, and returns `status`.
weir_status remember(weir_status status, const std::exception& error, int rank);

/// WEIR_PENDING. weir_last_error tells for whom the call waits.
weir_status still_pending(const std::string& waits_for);

weir_status status_of(ErrorCode code);

/// Turns exceptions into error codes: none may pass into C.
template <typename Body>
weir_status guarded(Body body) {
  try {
    return body();
  } catch (const Error& error) {
    return remember(status_of(error.code()), error, error.rank() ? *error.rank() : -1);
  } catch (const std::invalid_argument& error) {
    return remember(WEIR_INVALID_ARGUMENT, error, -1);
  } catch (const std::exception& error) {
    return remember(WEIR_INTERNAL_ERROR, error, -1);
  }
}

/// What a caller must not pass as NULL.
template <typename Object>
Object& object_at(Object* pointer, std::string_view what) {
  if (pointer == nullptr) {
    throw std::invalid_argument(fmt::format("{}: found NULL; allowed: one of this library", what));
  }
  return *pointer;
}

/// A caller's reason to abort, or the beginning of a long one.
inline std::string_view reason_at(const char* why) {
  constexpr std::size_t kMostBytes = 1000;
  return {why, strnlen(&object_at(why, "why"), kMostBytes)};
}

} // namespace weir::host::c
