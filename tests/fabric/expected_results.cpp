// SPDX-License-Identifier: BSD-3-Clause
#include "expected_results.hpp"

#include <algorithm>

namespace weir::fabric {

using host::CallKind;

ExpectedResults::ExpectedResults(const RingPlan& plan, std::uint32_t nonce)
    : plan_(plan), nonce_(nonce) {
  for (std::uint32_t call = 0; call < plan.calls.size(); ++call) {
    add_messages_of(call);
    last_messages_.push_back(shares_.size());
  }
}

/// An all-gather has messages of its own for each rank's share. A barrier has one, an empty call
/// none.
void ExpectedResults::add_messages_of(std::uint32_t call) {
  const CallPlan& plan = plan_.calls[call];
  if (plan.call.kind == CallKind::barrier) {
    shares_.push_back({call, 0, 0});
    return;
  }
  const std::size_t most = (plan_.spec.max_message_bytes - kInaHeaderBytes) / 8 * 8;
  const std::size_t all = plan.result_bytes(plan_.spec.world());
  const std::size_t segment = plan.call.kind == CallKind::all_gather ? plan.own_bytes() : all;
  for (std::size_t begin = 0; begin < all; begin += segment) {
    for (std::size_t at = 0; at < segment; at += most) {
      shares_.push_back({call, begin + at, std::min(most, segment - at)});
    }
  }
}

const ExpectedResults::Share* ExpectedResults::share_of(std::uint64_t message) const {
  return message == 0 || message > shares_.size() ? nullptr : &shares_[message - 1];
}

DataKey ExpectedResults::key(std::uint16_t rank, std::uint32_t call) const {
  return {plan_.spec.id, nonce_, call, rank};
}

std::vector<std::uint8_t> ExpectedResults::given_by(std::uint16_t rank, std::uint32_t call) const {
  const CallPlan& plan = plan_.call_of(rank, call);
  std::vector<std::uint8_t> data(plan.given_bytes(rank, plan_.spec.world()));
  fill(data, plan.call.type, key(rank, call));
  return data;
}

std::vector<std::uint8_t> ExpectedResults::reckon(std::uint32_t call) const {
  const CallPlan& plan = plan_.calls[call];
  const std::uint16_t world = plan_.spec.world();
  std::vector<std::uint8_t> all;
  switch (plan.call.kind) {
  case CallKind::all_reduce:
  case CallKind::reduce:
  case CallKind::reduce_scatter:
    return fold(plan.result_bytes(world), plan.call.type, plan.call.operation, key(0, call), world);
  case CallKind::broadcast:
    return given_by(plan.call.root, call);
  case CallKind::all_gather:
    for (std::uint16_t rank = 0; rank < world; ++rank) {
      const std::vector<std::uint8_t> share = given_by(rank, call);
      all.insert(all.end(), share.begin(), share.end());
    }
    return all;
  case CallKind::barrier:
  case CallKind::sparse_all_reduce: // not here: it is made of all-reduces
    break;
  }
  return all;
}

const std::vector<std::uint8_t>& ExpectedResults::results_of(std::uint32_t call) {
  const auto [found, is_new] = results_.try_emplace(call);
  if (is_new) {
    found->second = reckon(call);
  }
  return found->second;
}

std::span<const std::uint8_t> ExpectedResults::kept_by(std::uint16_t rank, std::uint32_t call) {
  const CallPlan& plan = plan_.calls[call];
  const std::span<const std::uint8_t> all = results_of(call);
  switch (plan.call.kind) {
  case CallKind::reduce:
    return rank == plan.call.root ? all : all.first(0);
  case CallKind::reduce_scatter:
    return all.subspan(rank * plan.own_bytes(), plan.own_bytes());
  default:
    return all;
  }
}

} // namespace weir::fabric
