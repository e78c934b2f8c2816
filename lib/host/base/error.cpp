// SPDX-License-Identifier: BSD-3-Clause
#include "host/base/error.hpp"

#include <fmt/format.h>

#include <new>

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
  case ErrorCode::operator_failed:
    return "operator_failed";
  case ErrorCode::cancelled:
    return "cancelled";
  case ErrorCode::no_region:
    return "no_region";
  }
  return "unknown";
}

Error Error::of_taken_ring(std::uint32_t ring) const {
  Error error = *this;
  error.taken_ring_ = ring;
  return error;
}

Error Error::in_words(const std::string& message) const {
  Error error(code_, rank_, message);
  error.taken_ring_ = taken_ring_;
  return error;
}

std::string text_of(const std::exception& error) {
  const bool is_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  return is_memory ? "no memory is left" : error.what();
}

std::string named(const std::vector<std::uint16_t>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

} // namespace weir::host
