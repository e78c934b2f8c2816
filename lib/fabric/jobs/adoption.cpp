// SPDX-License-Identifier: BSD-3-Clause

/// A store that has lost jobs that run gets them back from the switches. Until each has said what
/// it has, no order is given.

#include "jobs/found_job.hpp"
#include "jobs/hexadecimal.hpp"
#include "jobs/loop.hpp"
#include "jobs/records.hpp"
#include "jobs/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace weir::jobs {
namespace {

/// Whose it is, and which of his.
std::string request_of(const v1::FabricLabel& label) {
  return fmt::format("{}/{}/{}", hexadecimal(label.request_id()), label.allocation(),
                     label.owner());
}

} // namespace

void Loop::check_without(const v1::AdoptRequest& request) const {
  for (const std::string& name : request.without()) {
    if (!site_.switch_named(name)) {
      throw Refused(Code::invalid, fmt::format("without: found '{}'; allowed: a switch of the "
                                               "topology",
                                               name));
    }
  }
}

v1::ClaimResponse Loop::adopt(const Caller& caller, const v1::AdoptRequest& request, Time now) {
  require_operator(caller);
  require_claimable();
  check_without(request);
  const bool has_begun = is_adopting() && awaits_claim_.empty();
  v1::FabricRecord next = has_begun ? fabric_ : claimed_record(now);
  if (!has_begun) {
    next.clear_adopts_without();
  }
  next.set_adopts(true);
  for (const std::string& name : request.without()) {
    if (std::ranges::find(next.adopts_without(), name) == next.adopts_without().end()) {
      next.add_adopts_without(name);
    }
  }
  if (!has_begun) {
    return take_fabric(caller, next);
  }
  if (!save({{kFabricKey, next.SerializeAsString()}})) {
    throw Refused(Code::unavailable, why_idle());
  }
  fabric_ = next;
  has_told_adoption_ = false;
  v1::ClaimResponse response = claim_response(next, unseen());
  response.set_goes_on(true);
  step(now);
  return response;
}

/// Switches that are waited for.
std::vector<std::string> Loop::unseen() const {
  const auto& without = fabric_.adopts_without();
  std::vector<std::string> names;
  for (SwitchIndex at = 0; at < switches_.size(); ++at) {
    const std::string& name = site_.name_of(at);
    if (!has_told_rings(switches_[at]) && std::ranges::find(without, name) == without.end()) {
      names.push_back(name);
    }
  }
  return names;
}

/// An older switch tells labels alone.
bool Loop::has_told_rings(const SwitchState& state) {
  return state.reach == Reach::serving && state.is_fresh &&
         std::ranges::all_of(state.labels,
                             [&](const auto& entry) { return state.rings.contains(entry.first); });
}

/// Empty: it waits for none.
std::string Loop::why_adopting() const {
  const auto names = is_adopting() ? unseen() : std::vector<std::string>();
  return names.empty()
             ? ""
             : fmt::format("jobs that run are being adopted: {} must say what rings they have; "
                           "without one: `weirctl fabric adopt --without NAME`",
                           names_in_words(names));
}

void Loop::look_at_adoption(Time now) {
  if (!is_adopting() || is_lost_ || is_over_) {
    return;
  }
  if (const std::string waits = why_adopting(); !waits.empty()) {
    if (!std::exchange(has_told_adoption_, true)) {
      outside_.note("adopts", waits);
    }
    return;
  }
  if (!drop_outdated()) {
    return;
  }
  for (const FoundJob& found : found_jobs()) {
    const v1::JobRecord* const stored = record_of(found.label());
    if (!(stored == nullptr ? adopt_job(found) : settle(*stored, found))) {
      return; // the store does not answer: once more, later
    }
  }
  v1::FabricRecord next = fabric_;
  next.clear_adopts();
  next.clear_adopts_without();
  if (!save({{kFabricKey, next.SerializeAsString()}})) {
    return;
  }
  fabric_ = next;
  outside_.note("has_adopted", "all jobs that switches have rings of are in the store");
  for (const auto& [id, record] : records_) {
    care_.erase(id); // nobody could come back before
    take_up(id, now);
  }
}

/// Jobs of an old store that are over: no switch has a ring of theirs, or one has another job's
/// ring of the same number.
bool Loop::drop_outdated() {
  std::vector<std::uint64_t> outdated;
  for (const auto& [id, record] : records_) {
    const Traces traces = traces_of(record);
    if (traces.of_others != 0 || (traces.own == 0 && traces.unseen == 0)) {
      outdated.push_back(id);
    }
  }
  for (const std::uint64_t id : outdated) {
    if (!save({{job_key(id), std::nullopt}})) {
      return false;
    }
    outside_.note("outdated", fmt::format("job {} is not as the store has it", id));
    records_.erase(id);
    care_.erase(id);
  }
  return true;
}

Loop::Traces Loop::traces_of(const v1::JobRecord& record) const {
  Traces traces;
  for (const v1::RingRecord& ring : record.rings()) {
    for (const v1::PartRecord& part : ring.parts()) {
      const auto at = site_.switch_named(part.switch_name());
      if (!at) {
        continue;
      }
      const SwitchState& state = switches_[*at];
      const auto label = state.labels.find(ring.id());
      if (label != state.labels.end()) {
        ++(is_of(label->second, record) ? traces.own : traces.of_others);
      }
      traces.unseen += has_told_rings(state) ? 0 : 1;
    }
  }
  return traces;
}

/// Of one request, and of one owner: each of them draws his own. A label of before tells neither
/// owner nor number of rings.
bool Loop::is_of(const v1::FabricLabel& label, const v1::JobRecord& record) {
  return label.request_id() == record.request().request_id() &&
         (label.rings() == 0 ||
          (label.owner() == record.owner() && label.allocation() == record.allocation()));
}

/// In the order of their numbers. Of jobs by one request and owner the last: when it was asked for,
/// no manager knew of the ones before.
std::vector<FoundJob> Loop::found_jobs() const {
  std::map<std::string, FoundJob> by_request;
  for (SwitchIndex at = 0; at < switches_.size(); ++at) {
    const SwitchState& state = switches_[at];
    for (const v1::SeenRing& seen : state.seen.rings()) {
      const auto label = state.labels.find(seen.id());
      const auto ring = state.rings.find(seen.id());
      if (!state.is_fresh || label == state.labels.end() || ring == state.rings.end()) {
        continue;
      }
      FoundJob& found =
          by_request.try_emplace(request_of(label->second), site_, label->second).first->second;
      if (label->second.job() > found.label().job()) {
        found = FoundJob(site_, label->second);
      }
      if (label->second.job() == found.label().job()) {
        found.add(at, state.boot, ring->second);
      }
    }
  }
  std::vector<FoundJob> found;
  for (auto& [request, job] : by_request) {
    found.push_back(std::move(job));
  }
  std::ranges::sort(found, {}, [](const FoundJob& job) { return job.label().job(); });
  return found;
}

const v1::JobRecord* Loop::record_of(const v1::FabricLabel& label) const {
  const auto found =
      std::ranges::find_if(records_, [&](const auto& entry) { return is_of(label, entry.second); });
  return found == records_.end() ? nullptr : &found->second;
}

/// A job that was placing when the store was copied, and that runs. False: it could not be stored.
bool Loop::settle(const v1::JobRecord& stored, const FoundJob& found) {
  const v1::JobRecord seen = found.record();
  if (stored.state() != v1::JobRecord::PLACING || seen.state() != v1::JobRecord::PLACED) {
    return true;
  }
  v1::JobRecord placed = stored;
  placed.set_state(v1::JobRecord::PLACED);
  *placed.mutable_rings() = seen.rings();
  return save(placed);
}

/// False: it could not be stored.
bool Loop::adopt_job(const FoundJob& found) {
  const v1::FabricLabel& label = found.label();
  v1::JobRecord record = found.record();
  v1::FabricRecord fabric = fabric_;
  if (records_.contains(record.id())) { // of an old store, whose number it is too
    record.set_id(fabric.next_job());
    fabric.set_next_job(fabric.next_job() + 1);
  }
  std::vector<store::Change> changes;
  std::optional<v1::AllocationRecord> allocation;
  const v1::AllocationRecord* replaced = nullptr;
  if (!label.allocation().empty()) {
    allocation = allocation_of(label, record);
    replaced = allocation_named(label.allocation());
    replaced = replaced == nullptr || replaced->id() == allocation->id() ? nullptr : replaced;
    record.mutable_request()->set_allocation(allocation->id());
    fabric.set_next_allocation(std::max(fabric.next_allocation(), allocation->id() + 1));
    changes.push_back({allocation_key(allocation->id()), allocation->SerializeAsString()});
  }
  if (replaced != nullptr) { // granted anew since, under its name
    changes.push_back({allocation_key(replaced->id()), std::nullopt});
  }
  changes.push_back({kFabricKey, fabric.SerializeAsString()});
  changes.push_back({job_key(record.id()), record.SerializeAsString()});
  if (!save(changes)) {
    return false;
  }
  fabric_ = fabric;
  if (replaced != nullptr) {
    allocations_.erase(replaced->id());
  }
  if (allocation) {
    allocations_[allocation->id()] = *allocation;
  }
  const bool is_whole = record.state() == v1::JobRecord::PLACED;
  outside_.note(is_whole ? "adopted" : "not_adopted",
                fmt::format("job {} ({}, {} hosts){}", record.id(), label.name(),
                            label.positions_size(),
                            is_whole ? "" : fmt::format(" ends: {}", record.why())));
  records_[record.id()] = record;
  return true;
}

} // namespace weir::jobs
