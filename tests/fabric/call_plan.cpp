// SPDX-License-Identifier: BSD-3-Clause
#include "call_plan.hpp"

#include <algorithm>

namespace weir::fabric {
namespace {

using host::CallKind;
using network::kPercent;

DataType draw_type(Dice& dice) {
  return static_cast<DataType>(dice.below(kDataTypes));
}

Operation draw_operation(Dice& dice, DataType type) {
  for (;;) {
    const auto operation = static_cast<Operation>(dice.below(kOperations));
    if (is_reducible(type, operation)) {
      return operation;
    }
  }
}

/// Cuts a tensor into two to four, some of which may be empty.
std::vector<std::uint64_t> draw_parts(Dice& dice, std::uint64_t count) {
  std::vector<std::uint64_t> cuts{0, count};
  for (std::uint64_t i = dice.between(1, 3); i > 0; --i) {
    cuts.push_back(dice.below(count + 1));
  }
  std::ranges::sort(cuts);
  std::vector<std::uint64_t> parts;
  for (std::size_t i = 1; i < cuts.size(); ++i) {
    parts.push_back(cuts[i] - cuts[i - 1]);
  }
  return parts;
}

bool is_shared(CallKind kind) {
  return kind == CallKind::all_gather || kind == CallKind::reduce_scatter;
}

CallPlan with_other_type(Dice& dice, CallPlan plan) {
  const DataType type = draw_type(dice);
  if (element_size(type) == element_size(plan.call.type) &&
      (!plan.call.reduces() || is_reducible(type, plan.call.operation))) {
    plan.call.type = type;
  }
  return plan;
}

CallPlan with_other_root(Dice& dice, CallPlan plan, std::uint16_t world) {
  if (plan.call.kind == CallKind::broadcast) {
    plan.call.root = static_cast<std::uint16_t>(dice.below(world));
  }
  return plan;
}

CallPlan with_other_operation(Dice& dice, CallPlan plan) {
  if (plan.call.reduces()) {
    plan.call.operation = draw_operation(dice, plan.call.type);
  }
  return plan;
}

/// An all-reduce in place of a broadcast, or the other way round. No other field differs if the
/// root is 0 and the operation a sum.
CallPlan with_other_collective(CallPlan plan) {
  if (plan.call.kind == CallKind::broadcast) {
    plan.call.kind = CallKind::all_reduce;
    plan.call.operation = Operation::sum;
    plan.call.root = 0;
  } else if (plan.call.kind == CallKind::all_reduce) {
    plan.call.kind = CallKind::broadcast;
    plan.call.operation = Operation::sum;
    plan.parts.clear();
  }
  return plan;
}

} // namespace

std::size_t CallPlan::own_bytes() const {
  return call.kind == CallKind::barrier ? 0 : call.count * host::bytes_of_element(call.type);
}

std::size_t CallPlan::given_bytes(std::uint16_t rank, std::uint16_t world) const {
  switch (call.kind) {
  case CallKind::broadcast:
    return rank == call.root ? own_bytes() : 0;
  case CallKind::reduce_scatter:
    return own_bytes() * world;
  default:
    return own_bytes();
  }
}

std::size_t CallPlan::result_bytes(std::uint16_t world) const {
  return own_bytes() * (is_shared(call.kind) ? world : 1u);
}

std::size_t CallPlan::kept_bytes(std::uint16_t rank, std::uint16_t world) const {
  switch (call.kind) {
  case CallKind::reduce:
    return rank == call.root ? own_bytes() : 0;
  case CallKind::all_gather:
    return own_bytes() * world;
  default:
    return own_bytes();
  }
}

CallPlan draw_call(Dice& dice, const ring::RingSpec& spec, std::uint64_t most_messages) {
  CallPlan plan;
  plan.call.kind = dice.chance(30 * kPercent) // all-reduces most
                       ? CallKind::all_reduce
                       : host::kDenseCalls[dice.below(host::kDenseCalls.size())];
  plan.buffers = dice.pick({Buffers::in_place, Buffers::in_place, Buffers::out_of_place});
  if (plan.call.kind == CallKind::barrier) {
    return plan;
  }
  plan.call.type = draw_type(dice);
  if (plan.call.reduces()) {
    plan.call.operation = draw_operation(dice, plan.call.type);
  }
  if (plan.call.has_root()) {
    plan.call.root = static_cast<std::uint16_t>(dice.below(spec.world()));
  }
  const std::uint64_t message = (spec.max_message_bytes - kInaHeaderBytes) / 8 * 8;
  const std::uint64_t messages = dice.chance(10 * kPercent) ? 0 : dice.between(1, most_messages);
  const std::uint64_t bytes =
      messages == 0 ? 0 : (messages - 1) * message + dice.below(message + 1);
  const std::uint64_t shares = is_shared(plan.call.kind) ? spec.world() : 1;
  const std::size_t element = element_size(plan.call.type) * shares;
  plan.call.count = messages == 0 ? 0 : std::max<std::uint64_t>(1, bytes / element);
  if (plan.call.kind == CallKind::all_reduce && dice.chance(30 * kPercent)) {
    plan.parts = draw_parts(dice, plan.call.count);
  }
  return plan;
}

std::optional<CallPlan> draw_disagreeing(Dice& dice, const CallPlan& with, std::uint16_t world) {
  if (with.own_bytes() == 0) {
    return std::nullopt;
  }
  CallPlan other = with;
  switch (dice.below(4)) {
  case 0:
    other = with_other_type(dice, with);
    break;
  case 1:
    other = with_other_root(dice, with, world);
    break;
  case 2:
    other = with_other_operation(dice, with);
    break;
  default:
    other = with_other_collective(with);
    break;
  }
  return other.call == with.call ? std::nullopt : std::optional(other);
}

} // namespace weir::fabric
