// SPDX-License-Identifier: BSD-3-Clause
#include "host/bootstrap/error.hpp"

namespace weir::host {

std::string_view name_of(ErrorCode code) {
  switch (code) {
  case ErrorCode::rendezvous_timeout:
    return "rendezvous_timeout";
  case ErrorCode::peer_died:
    return "peer_died";
  case ErrorCode::retry_exceeded:
    return "retry_exceeded";
  case ErrorCode::not_aggregated:
    return "not_aggregated";
  case ErrorCode::mismatch:
    return "mismatch";
  case ErrorCode::timeout:
    return "timeout";
  case ErrorCode::transport_failure:
    return "transport_failure";
  case ErrorCode::aborted:
    return "aborted";
  }
  return "unknown";
}

} // namespace weir::host
