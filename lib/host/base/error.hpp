// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace weir::host {

enum class ErrorCode : std::uint8_t {
  rendezvous_timeout, // a rank did not come, or rank 0 was not reached
  peer_died,          // a rank's process ended, or left while others still called
  retry_exceeded,     // packets stayed unacknowledged: switch or link gone, or switch restarted
  // A result came without the RESULT flag: nobody on the path aggregates this ring.
  not_aggregated,
  mismatch,          // ranks disagree on options or on a call, or another group has the ring
  timeout,           // no progress for `timeout`
  transport_failure, // the device, the socket or the peer's transport failed
  aborted,           // a rank's program wanted no more
  operator_failed,   // a switch's kernel for an operator gave other bits than its loops
  cancelled,         // a request's caller wanted no more; the group goes on
  no_region,         // the switch makes no such region, or has ended it; the group goes on
};

inline constexpr std::uint8_t kErrorCodes = 9; // that end a group: ranks tell one another of these

inline constexpr std::uint8_t kAllErrorCodes = 11;

std::string_view name_of(ErrorCode code);

/// What went wrong, and the rank concerned if it is one rank. A group that threw an error is
/// broken: every later call throws it again. But for `cancelled` and `no_region`.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::optional<std::uint16_t> rank, const std::string& message)
      : std::runtime_error(message), code_(code), rank_(rank) {}

  ErrorCode code() const { return code_; }

  std::optional<std::uint16_t> rank() const { return rank_; }

  /// The ring that another job has begun on, as far as this rank was told so itself.
  std::optional<std::uint32_t> taken_ring() const { return taken_ring_; }

  Error of_taken_ring(std::uint32_t ring) const;

  /// The same with another text.
  Error in_words(const std::string& message) const;

 private:
  ErrorCode code_;
  std::optional<std::uint16_t> rank_;
  std::optional<std::uint32_t> taken_ring_;
};

/// What any exception says, in words also when no memory was left.
std::string text_of(const std::exception& error);

/// "rank 2", "ranks 2, 3".
std::string named(const std::vector<std::uint16_t>& ranks);

} // namespace weir::host
