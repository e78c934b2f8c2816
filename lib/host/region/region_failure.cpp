// SPDX-License-Identifier: BSD-3-Clause
#include "host/region/region_failure.hpp"

#include <fmt/format.h>

#include <optional>

namespace weir::host {

Error region_failure(endpoint::Status status, const wire::IpAddress& ip, std::string_view words) {
  const ErrorCode code = status == endpoint::Status::retry_exceeded ? ErrorCode::retry_exceeded
                                                                    : ErrorCode::transport_failure;
  return Error(
      code, std::nullopt,
      fmt::format("the connection to the region at {} failed: {}", wire::to_string(ip), words));
}

} // namespace weir::host
