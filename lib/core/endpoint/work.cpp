// SPDX-License-Identifier: BSD-3-Clause
#include "endpoint/work.hpp"

namespace weir::endpoint {

std::string_view name_of(Status status) {
  switch (status) {
  case Status::success:
    return "success";
  case Status::retry_exceeded:
    return "retry_exceeded";
  case Status::rnr_retry_exceeded:
    return "rnr_retry_exceeded";
  case Status::remote_access:
    return "remote_access";
  case Status::remote_invalid_request:
    return "remote_invalid_request";
  case Status::remote_operational:
    return "remote_operational";
  case Status::bad_response:
    return "bad_response";
  case Status::local_length:
    return "local_length";
  case Status::local_protection:
    return "local_protection";
  case Status::local_invalid_request:
    return "local_invalid_request";
  case Status::flushed:
    return "flushed";
  }
  return "unknown";
}

} // namespace weir::endpoint
