// SPDX-License-Identifier: BSD-3-Clause
#include "host/transport/transport.hpp"

#include "host/base/error.hpp"

#include <fmt/format.h>

#include <sched.h>

namespace weir::host {
namespace {

constexpr std::uint8_t kMaxExponent = 31;

constexpr std::chrono::nanoseconds timeout_of(std::uint8_t exponent) {
  return std::chrono::nanoseconds(std::int64_t{4096} << exponent);
}

} // namespace

wire::IpAddress ip_of(std::span<const std::uint8_t> address, std::uint16_t rank) {
  if (address.size() < sizeof(wire::IpAddress)) {
    throw Error(ErrorCode::mismatch, rank,
                fmt::format("rank {} sent {} bytes of addresses; due are {} at least", rank,
                            address.size(), sizeof(wire::IpAddress)));
  }
  return wire::IpAddress::from_v6(address.data());
}

bool Spins::spin() {
  if (left_ == 0) {
    return false;
  }
  --left_;
  sched_yield();
  return true;
}

/// A switch says it in the receiver's name.
Error TransportPlan::remote_failure(std::uint16_t neighbour) const {
  if (!has_operators) {
    return {ErrorCode::transport_failure, neighbour,
            fmt::format("rank {}: rank {} could not go on (remote operational error)", rank,
                        neighbour)};
  }
  return {
      ErrorCode::operator_failed, std::nullopt,
      fmt::format("rank {}: the switch has ended the run (operator_disagrees): its kernel for an "
                  "operator gave other bits than the operator's loops, which fold from now on (its "
                  "`show operators` says which): start the job again",
                  rank)};
}

Error TransportPlan::ring_taken(std::size_t channel) const {
  const std::uint32_t ring = rings.at(channel);
  return Error(ErrorCode::mismatch, std::nullopt,
               fmt::format(
                   "rank {}: another job began on ring {} of the switch, which has ended this one; "
                   "allowed: a ring for each job of the same hosts, by other ids (rings, --ring, "
                   "WEIR_RINGS), or from a switch that makes them (switch_address, WEIR_SWITCH)",
                   rank, ring))
      .of_taken_ring(ring);
}

Error TransportPlan::ring_given_up() const {
  return {
      ErrorCode::transport_failure, std::nullopt,
      fmt::format("rank {}: the switch has ended the job: its ring was reset or withdrawn, by an "
                  "order, a new configuration, its lease or its owner's end (the switch's log "
                  "says which); allowed: to start the job again",
                  rank)};
}

std::uint8_t TransportPlan::ack_timeout_exponent() const {
  std::uint8_t exponent = 1;
  while (exponent < kMaxExponent && timeout_of(exponent) < ack_timeout) {
    ++exponent;
  }
  return exponent;
}

std::chrono::nanoseconds TransportPlan::exact_ack_timeout() const {
  return timeout_of(ack_timeout_exponent());
}

} // namespace weir::host
