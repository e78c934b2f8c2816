// SPDX-License-Identifier: BSD-3-Clause
#include "expected_results.hpp"

#include "operators.hpp"

#include <algorithm>

namespace weir::fabric {

using host::CallKind;

ExpectedResults::ExpectedResults(const RingPlan& plan, std::uint32_t nonce)
    : plan_(plan), nonce_(nonce) {
  for (std::uint32_t call = 0; call < plan.calls.size(); ++call) {
    add_messages_of(call);
    last_messages_.push_back(shares_.size());
  }
  first_packets_ = {0, 1};
  for (const Share& share : shares_) {
    const std::size_t bytes = kInaHeaderBytes + share.bytes;
    const auto packets = static_cast<std::uint32_t>((bytes + plan.spec.mtu - 1) / plan.spec.mtu);
    first_packets_.push_back(first_packets_.back() + packets);
  }
}

std::optional<ExpectedResults::PacketShare> ExpectedResults::packet(std::uint32_t number) const {
  if (number >= packets()) {
    return std::nullopt;
  }
  if (number == 0) {
    return PacketShare{.starts_message = true};
  }
  const auto behind = std::ranges::upper_bound(first_packets_, number);
  const auto message = static_cast<std::size_t>(behind - first_packets_.begin()) - 1;
  const std::uint32_t place = number - first_packets_[message];
  const Share& share = shares_[message - 1];
  const std::size_t begin = place == 0 ? 0 : std::size_t{place} * plan_.spec.mtu - kInaHeaderBytes;
  const std::size_t end = std::min<std::size_t>(
      share.bytes, (std::size_t{place} + 1) * plan_.spec.mtu - kInaHeaderBytes);
  return PacketShare{&share, place == 0, share.offset + begin, end - begin};
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
      const auto root = plan.call.kind == CallKind::all_gather
                            ? static_cast<std::uint16_t>(begin / segment)
                            : plan.call.root;
      shares_.push_back({call, begin + at, std::min(most, segment - at), root});
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

/// Level by level, as the switches do it.
std::vector<std::uint8_t> ExpectedResults::fold_at(std::uint16_t node, std::uint32_t call) {
  Tensors tensors;
  for (const RingTree::Child& child : plan_.tree.parts[node].children) {
    tensors.push_back(child.node ? sum_of(*child.node, call) : given_by(child.ranks.first, call));
  }
  const host::Call& made = plan_.calls[call].call;
  if (made.type == kAsOperator) {
    return fold_by_operator(made.operation, tensors,
                            {plan_.spec.mtu, plan_.spec.max_message_bytes});
  }
  return fold(made.type, made.operation, tensors);
}

const std::vector<std::uint8_t>& ExpectedResults::sum_of(std::uint16_t node, std::uint32_t call) {
  const auto found = sums_.find({node, call});
  return found != sums_.end() ? found->second
                              : sums_.try_emplace({node, call}, fold_at(node, call)).first->second;
}

std::vector<std::uint8_t> ExpectedResults::reckon(std::uint32_t call) {
  const CallPlan& plan = plan_.calls[call];
  const std::uint16_t world = plan_.spec.world();
  std::vector<std::uint8_t> all;
  switch (plan.call.kind) {
  case CallKind::all_reduce:
  case CallKind::reduce:
  case CallKind::reduce_scatter:
    return sum_of(plan_.tree.root, call);
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
