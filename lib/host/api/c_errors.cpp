// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/c_errors.hpp"

namespace weir::host::c {
namespace {

struct LastError {
  std::string text;
  int rank = -1;
};

thread_local LastError last_error;

} // namespace

weir_status remember(weir_status status, const std::exception& error, int rank) {
  last_error = {host::text_of(error), rank};
  return status;
}

weir_status still_pending(const std::string& waits_for) {
  last_error = {waits_for};
  return WEIR_PENDING;
}

weir_status status_of(ErrorCode code) {
  switch (code) {
  case ErrorCode::rendezvous_timeout:
    return WEIR_RENDEZVOUS_TIMEOUT;
  case ErrorCode::peer_died:
    return WEIR_PEER_DIED;
  case ErrorCode::retry_exceeded:
    return WEIR_RETRY_EXCEEDED;
  case ErrorCode::not_aggregated:
    return WEIR_NOT_AGGREGATED;
  case ErrorCode::mismatch:
    return WEIR_MISMATCH;
  case ErrorCode::timeout:
    return WEIR_TIMEOUT;
  case ErrorCode::transport_failure:
    return WEIR_TRANSPORT_FAILURE;
  case ErrorCode::aborted:
    return WEIR_ABORTED;
  case ErrorCode::operator_failed:
    return WEIR_OPERATOR_FAILED;
  case ErrorCode::cancelled:
    return WEIR_CANCELLED;
  case ErrorCode::no_region:
    return WEIR_NO_REGION;
  }
  return WEIR_INTERNAL_ERROR;
}

} // namespace weir::host::c

using namespace weir;

const char* weir_last_error(void) {
  return host::c::last_error.text.c_str();
}

int weir_last_error_rank(void) {
  return host::c::last_error.rank;
}

const char* weir_status_name(weir_status status) {
  switch (status) {
  case WEIR_OK:
    return "ok";
  case WEIR_INVALID_ARGUMENT:
    return "invalid_argument";
  case WEIR_PENDING:
    return "pending";
  case WEIR_INTERNAL_ERROR:
    return "internal_error";
  case WEIR_ABORTED:
    return "aborted";
  case WEIR_OPERATOR_FAILED:
    return "operator_failed";
  case WEIR_CANCELLED:
    return "cancelled";
  case WEIR_NO_REGION:
    return "no_region";
  case WEIR_RENDEZVOUS_TIMEOUT:
  case WEIR_PEER_DIED:
  case WEIR_RETRY_EXCEEDED:
  case WEIR_NOT_AGGREGATED:
  case WEIR_MISMATCH:
  case WEIR_TIMEOUT:
  case WEIR_TRANSPORT_FAILURE:
    return host::name_of(static_cast<host::ErrorCode>(status - WEIR_RENDEZVOUS_TIMEOUT)).data();
  }
  return "unknown";
}
