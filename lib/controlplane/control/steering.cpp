// SPDX-License-Identifier: BSD-3-Clause
#include "control/steering.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

namespace weir::control {
namespace {

/// The first of the port's queues that the lcore polls.
std::optional<std::uint16_t> queue_of(const Placement::DataLcore& lcore, std::uint16_t port) {
  const auto queue = std::ranges::find(lcore.receives, port, &Placement::Queue::port);
  return queue == lcore.receives.end() ? std::nullopt : std::optional(queue->queue);
}

/// Rings may share some.
std::set<std::uint16_t> pairs_of(const ring::RingSet& rings) {
  std::set<std::uint16_t> pairs;
  for (const std::uint16_t ring : rings.present()) {
    for (std::uint16_t sender = 0; sender < rings.rings()[ring].senders(); ++sender) {
      const std::uint16_t pair = rings.pair_of(ring::RingChild{ring, sender});
      pairs.insert({pair, rings.reverse_of(pair)});
    }
  }
  return pairs;
}

} // namespace

SteeringPlan plan_steering(const ring::RingSet& rings, const Placement& placement,
                           std::uint16_t port) {
  SteeringPlan plan;
  for (const std::uint16_t pair : pairs_of(rings)) {
    if (!rings.may_enter(pair, port)) {
      continue;
    }
    const std::size_t worker = placement.pair(pair).worker;
    if (const auto queue = queue_of(placement.lcores[worker], port)) {
      plan.rules.push_back({rings.source_of(pair), rings.destination_of(pair), *queue});
    } else {
      ++plan.without_queue;
    }
  }
  return plan;
}

std::string kinds_of_trouble(const SteeringState& state) {
  return fmt::format("{}{}", state.reason, state.without_queue == 0 ? "" : "; without queue");
}

std::string why_not_all(const SteeringState& state, std::string_view port,
                        std::string_view driver) {
  std::vector<std::string> reasons;
  if (state.refused != 0) {
    reasons.push_back(fmt::format("{} refuses {} ({})", driver, state.refused, state.reason));
  }
  if (state.without_queue != 0) {
    reasons.push_back(
        fmt::format("the workers of {} poll no receive queue of this port (allowed: workers on the "
                    "port's NUMA node, with the role rx, and as many rx_queues)",
                    state.without_queue));
  }
  if (reasons.empty()) {
    return {};
  }
  return fmt::format(
      "port {}: {} of {} pairs of ring neighbours are steered: {}; the others' frames "
      "come as without `rx_steering: flow`",
      port, state.steered, state.steered + state.refused + state.without_queue,
      fmt::join(reasons, ", and "));
}

void Steering::install(const SteeringPlan& plan) {
  without_queue_ = plan.without_queue;
  for (const SteeringRule& wanted : plan.rules) {
    const Pair pair{wanted.source, wanted.destination};
    if (const auto entry = entries_.find(pair); entry != entries_.end()) {
      if (entry->second.queue == wanted.queue) {
        continue;
      }
      entries_.erase(entry); // devices refuse a second rule for the same frames
    }
    entries_.emplace(pair, Entry{.queue = wanted.queue, .rule = rule_for(wanted)});
  }
}

std::unique_ptr<FlowRule> Steering::rule_for(const SteeringRule& wanted) {
  try {
    return table_->create(wanted);
  } catch (const FlowRefused& refusal) {
    reason_ = refusal.what();
    return nullptr;
  }
}

void Steering::keep_only(const SteeringPlan& plan) {
  without_queue_ = plan.without_queue;
  std::set<Pair> wanted;
  for (const SteeringRule& rule : plan.rules) {
    wanted.insert({rule.source, rule.destination});
  }
  std::erase_if(entries_, [&](const auto& entry) { return !wanted.contains(entry.first); });
}

SteeringState Steering::state() const {
  SteeringState state{.steered = 0, .refused = 0, .without_queue = without_queue_, .reason = {}};
  for (const auto& [pair, entry] : entries_) {
    ++(entry.rule ? state.steered : state.refused);
  }
  state.reason = state.refused == 0 ? std::string() : reason_;
  return state;
}

} // namespace weir::control
