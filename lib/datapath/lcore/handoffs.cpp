// SPDX-License-Identifier: BSD-3-Clause
#include "lcore/handoffs.hpp"

#include <algorithm>
#include <string>

namespace weir::lcore {
namespace {

std::string handoff_name(char stage, unsigned from, unsigned to) {
  return std::string("weir_") + stage + std::to_string(from) + "_" + std::to_string(to);
}

} // namespace

Handoffs::Handoffs(unsigned lcore, int node, std::size_t pairs, RoundCounters& rounds)
    : lcore_(lcore), node_(node), rounds_(rounds), pair_routes_(pairs) {}

/// The values for `receiver`. They go through a ring in its inbox, which this makes on first use,
/// on the receiver's NUMA node.
template <typename Value>
Outbox<Value>* Handoffs::outbox_for(const Handoffs& receiver, const std::string& name,
                                    unsigned entries, Inboxes<Value>& inbox,
                                    Outboxes<Value>& outboxes) {
  for (const auto& [known, outbox] : outboxes) {
    if (known == &receiver) {
      return outbox.get();
    }
  }
  inbox.push_back(std::make_unique<Handoff<Value>>(name, entries, receiver.node_));
  outboxes.emplace_back(&receiver, std::make_unique<Outbox<Value>>(*inbox.back()));
  return outboxes.back().second.get();
}

Outbox<rte_mbuf*>* Handoffs::outbox_to(Handoffs& worker) {
  return outbox_for(worker, handoff_name('w', lcore_, worker.lcore_), kHandoffEntries,
                    worker.worker_inbox_, worker_outboxes_);
}

Outbox<TxRequest>* Handoffs::outbox_to(Handoffs& transmitter, std::size_t traffic) {
  constexpr std::array stages{'r', 't'}; // by class
  return outbox_for(transmitter, handoff_name(stages[traffic], lcore_, transmitter.lcore_),
                    kTxHandoffEntries[traffic], transmitter.tx_inbox_[traffic],
                    tx_outboxes_[traffic]);
}

void Handoffs::reach_worker(Handoffs& worker) {
  if (&worker != this) {
    outbox_to(worker);
  }
}

/// Rings of their own, so that no ring's frame is asked whether it is a region's.
void Handoffs::route_regions(Handoffs& owner) {
  if (&owner == this) {
    return;
  }
  assert(owner.worker_inbox_.size() == owner.region_inboxes_);
  owner.worker_inbox_.push_back(std::make_unique<WorkerHandoff>(
      handoff_name('g', lcore_, owner.lcore_), kHandoffEntries, owner.node_));
  ++owner.region_inboxes_;
  worker_outboxes_.emplace_back(nullptr,
                                std::make_unique<Outbox<rte_mbuf*>>(*owner.worker_inbox_.back()));
  way_to_regions_ = worker_outboxes_.back().second.get();
}

void Handoffs::reach_transmitter(Handoffs& transmitter) {
  for (std::size_t traffic = 0; traffic < frame::kTrafficClasses && &transmitter != this;
       ++traffic) {
    outbox_to(transmitter, traffic);
  }
}

void Handoffs::route_pair(std::uint16_t pair, Handoffs& worker, PairWorkers workers) {
  assert(pair != 0);
  pair_routes_.resize(std::max<std::size_t>(pair_routes_.size(), pair));
  const PairRoute route{&worker == this ? nullptr : outbox_to(worker), workers};
  if (route == PairRoute()) {
    pair_routes_[pair - 1u] = nullptr;
    return;
  }
  const auto known = std::ranges::find(routes_, route);
  pair_routes_[pair - 1u] = known == routes_.end() ? &routes_.emplace_back(route) : &*known;
}

void Handoffs::route_ring(std::uint16_t ring, Handoffs& worker,
                          conn::ConnectionOwners::Worker number) {
  Outbox<rte_mbuf*>* const way = &worker == this ? nullptr : outbox_to(worker);
  ring_routes_.resize(std::max<std::size_t>(ring_routes_.size(), ring + 1u));
  ring_routes_[ring] = way;
  workers_.resize(std::max<std::size_t>(workers_.size(), number + 1u));
  workers_[number] = way;
}

void Handoffs::route_port(std::uint16_t port, Handoffs& transmitter) {
  for (std::size_t traffic = 0; traffic < frame::kTrafficClasses; ++traffic) {
    tx_routes_[traffic][port] = &transmitter == this ? nullptr : outbox_to(transmitter, traffic);
  }
}

void Handoffs::add_helper(Handoffs& helper) {
  helper.reduction_inbox_.push_back(std::make_unique<ReductionHandoff>(
      handoff_name('s', lcore_, helper.lcore_), kHandoffEntries, helper.node_));
  helpers_.push_back(helper.reduction_inbox_.back().get());
}

bool Handoffs::ask(slot::Reduction& reduction) {
  const slot::Reduction::Task& task = reduction.task();
  if (helpers_.empty() || task.frames.size() * task.result.size() < kMinBytesToOffload) {
    return false;
  }
  next_helper_ = next_helper_ + 1 < helpers_.size() ? next_helper_ + 1 : 0;
  return helpers_[next_helper_]->push(&reduction);
}

unsigned Handoffs::make_reductions_for_others() {
  unsigned made = 0;
  for (const auto& inbox : reduction_inbox_) {
    std::array<slot::Reduction*, kReductionBurst> burst;
    const unsigned count = inbox->pop(burst);
    for (unsigned i = 0; i < count; ++i) {
      made += burst[i]->make() ? 1 : 0;
    }
  }
  rounds_.reductions_for_others += made;
  return made;
}

} // namespace weir::lcore
