// SPDX-License-Identifier: BSD-3-Clause
/// What switches are told: rings to make, and rings to remove.
#include "jobs/loop.hpp"
#include "jobs/records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weir::jobs {
namespace {

constexpr std::size_t kMostRingsInOrder = 64;
constexpr std::size_t kMostBytesInOrder =
    std::size_t{48} * 1024; // a switch takes messages of 64 KiB

std::vector<const v1::PartRecord*> parts_at(const std::string& name, const v1::JobRecord& record) {
  std::vector<const v1::PartRecord*> parts;
  for (const v1::RingRecord& ring : record.rings()) {
    for (const v1::PartRecord& part : ring.parts()) {
      if (part.switch_name() == name) {
        parts.push_back(&part);
      }
    }
  }
  return parts;
}

/// Whether a record as it is stored has the ring there. After an old store was restored, the ring's
/// and its job's number may be others' too.
bool has_ring(const std::string& stored, const std::string& name, std::uint32_t id) {
  v1::JobRecord record;
  record.ParseFromString(stored);
  const auto here = parts_at(name, record);
  return std::ranges::any_of(here,
                             [id](const v1::PartRecord* part) { return part->ring().id() == id; });
}

} // namespace

/// All that adoption.cpp needs beside the ring itself.
v1::FabricLabel Loop::label_of(const v1::JobRecord& record) const {
  v1::FabricLabel label;
  label.set_job(record.id());
  label.set_request_id(record.request().request_id());
  label.set_tenant(record.request().tenant());
  label.set_name(record.request().name());
  *label.mutable_positions() = record.positions();
  label.set_owner(record.owner());
  if (const auto granted = allocations_.find(record.request().allocation());
      granted != allocations_.end()) {
    label.set_allocation(granted->second.name());
    label.set_allocation_number(granted->first);
    label.set_granted_by(granted->second.granted_by());
    label.set_token_sha256(record.token().sha256());
    label.set_token_host(record.token().host());
  }
  label.set_reserve(record.request().reserve());
  label.set_rate(record.rate());
  label.set_rings(static_cast<std::uint32_t>(record.rings_size()));
  return label;
}

/// What one switch has too much, and what it lacks of what an order can hold.
struct Loop::Due {
  std::set<std::uint32_t> known; // rings of the records that lie there
  std::set<std::uint32_t> to_remove;
  std::set<std::uint64_t> ending; // jobs whose rings are removed
  v1::ApplyRingsRequest apply;
  std::size_t bytes = 0; // of the records in it
  std::set<std::uint64_t> placed;
};

/// One order at a time: its answer tells what the next one stands on. Removals come first.
void Loop::give_orders(SwitchIndex at) {
  const SwitchState& state = switches_[at];
  if (is_over_ || is_lost_ || state.under_way || state.reach != Reach::serving) {
    return;
  }
  Due due;
  for (const auto& [id, record] : records_) {
    collect(at, id, record, due);
  }
  if (!collect_unknown(at, due)) {
    is_lost_ = true; // the store has what we do not know
    return;
  }
  if (!due.to_remove.empty()) {
    order_removal(at, due);
  } else if (due.apply.rings_size() != 0) {
    order_rings(at, due);
  }
}

void Loop::collect(SwitchIndex at, std::uint64_t id, const v1::JobRecord& record, Due& due) {
  const auto here = parts_at(site_.name_of(at), record);
  if (here.empty()) {
    return;
  }
  for (const v1::PartRecord* const part : here) {
    due.known.insert(part->ring().id());
  }
  const Care& care = care_[id];
  if (record.state() == v1::JobRecord::ENDING && !care.gone_at.contains(at)) {
    for (const v1::PartRecord* const part : here) {
      due.to_remove.insert(part->ring().id());
    }
    due.ending.insert(id);
  }
  const std::size_t bytes = due.bytes + record.ByteSizeLong();
  const std::size_t rings = static_cast<std::size_t>(due.apply.rings_size()) + here.size();
  const bool fits =
      due.placed.empty() ||
      (rings <= kMostRingsInOrder && bytes <= kMostBytesInOrder && switches_[at].one_by_one == 0);
  if (record.state() == v1::JobRecord::PLACING && !care.made_at.contains(at) && fits) {
    for (const v1::PartRecord* const part : here) {
      v1::LabelledRing& ring = *due.apply.add_rings();
      *ring.mutable_ring() = part->ring();
      *ring.mutable_label() = label_of(record);
    }
    due.bytes = bytes;
    due.placed.insert(id);
  }
}

/// Rings of a manager there that no record has. False: the store has a record of one.
bool Loop::collect_unknown(SwitchIndex at, Due& due) {
  const SwitchState& state = switches_[at];
  if (!state.is_fresh) {
    return true;
  }
  for (const v1::SeenRing& ring : state.seen.rings()) {
    if (!ring.is_managed() || due.known.contains(ring.id())) {
      continue;
    }
    const auto label = state.labels.find(ring.id());
    const auto stored = store_.read(job_key(label == state.labels.end() ? 0 : label->second.job()));
    if (!stored || has_ring(*stored, site_.name_of(at), ring.id())) {
      return false;
    }
    ++counts_.drift[kRingUnknown];
    due.to_remove.insert(ring.id());
  }
  return true;
}

/// The switch's next order, which is under way from now on.
void Loop::number(SwitchIndex at, Order order, v1::FabricOrder& message) {
  SwitchState& state = switches_[at];
  order.number = state.next_order++;
  order.boot = state.boot;
  message.set_fabric(site_.fabric);
  write(identity_.term, *message.mutable_term());
  message.set_boot(order.boot);
  message.set_number(order.number);
  state.under_way = std::move(order);
}

void Loop::order_removal(SwitchIndex at, const Due& due) {
  v1::RemoveRingsRequest remove;
  remove.mutable_ids()->Add(due.to_remove.begin(), due.to_remove.end());
  Order order{.rings = {due.to_remove.begin(), due.to_remove.end()}, .jobs = due.ending};
  number(at, std::move(order), *remove.mutable_order());
  outside_.remove(at, remove);
}

void Loop::order_rings(SwitchIndex at, Due& due) {
  SwitchState& state = switches_[at];
  Order order{.is_apply = true, .rings = {}, .jobs = due.placed};
  for (const v1::LabelledRing& ring : due.apply.rings()) {
    order.rings.push_back(ring.ring().id());
    state.labels[ring.ring().id()] = ring.label();
  }
  state.one_by_one -= state.one_by_one == 0 ? 0 : 1;
  number(at, std::move(order), *due.apply.mutable_order());
  outside_.apply(at, due.apply);
}

void Loop::on_ordered(SwitchIndex at, std::uint64_t number, const Outcome& outcome, Time now) {
  SwitchState& state = switches_[at];
  if (is_over_ || !state.under_way || state.under_way->number != number) {
    return;
  }
  const Order order = *std::exchange(state.under_way, std::nullopt);
  switch (outcome.code) {
  case Code::ok:
    if (order.boot == state.boot) {
      state.settled_order = number;
      state.is_fresh = false; // what was seen before may lack it
    }
    for (const std::uint64_t id : order.jobs) {
      const auto care = care_.find(id);
      if (care != care_.end() && order.is_apply && order.boot == state.boot) {
        care->second.made_at[at] = order.boot;
      } else if (care != care_.end() && !order.is_apply) {
        care->second.gone_at.insert(at);
      }
    }
    break;
  case Code::over:
    fence(outcome.words);
    return;
  case Code::no_answer:
    break;
  default:
    if (order.is_apply && order.jobs.size() > 1) {
      state.one_by_one = order.jobs.size();
    } else if (order.is_apply) {
      for (const std::uint64_t id : order.jobs) {
        begin_end(id, fmt::format("{} refused: {}", site_.name_of(at), outcome.words), now);
      }
    }
  }
  step(now);
}

} // namespace weir::jobs
