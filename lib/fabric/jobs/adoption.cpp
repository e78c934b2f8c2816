// SPDX-License-Identifier: BSD-3-Clause

/// A store that has lost jobs that run gets them back from the switches. Until each has said what
/// it has, no order is given.

#include "jobs/found_job.hpp"
#include "jobs/loop.hpp"
#include "jobs/records.hpp"
#include "jobs/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace weir::jobs {

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
  next.set_adopts(true);
  *next.mutable_adopts_without() = request.without();
  if (!has_begun) {
    return take_fabric(caller, next);
  }
  if (!save({{kFabricKey, next.SerializeAsString()}})) {
    throw Refused(Code::unavailable, why_idle());
  }
  fabric_ = next;
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

void Loop::look_at_adoption(Time now) {
  if (!is_adopting() || is_lost_ || is_over_) {
    return;
  }
  if (const auto names = unseen(); !names.empty()) {
    const bool is_new = adopts_.empty();
    adopts_ = fmt::format("jobs that run are being adopted: {} must say what rings they have; "
                          "without one: `weirctl fabric adopt --without NAME`",
                          names_in_words(names));
    if (is_new) {
      outside_.note("adopts", adopts_);
    }
    return;
  }
  if (!drop_outdated()) {
    return;
  }
  for (const FoundJob& found : found_jobs()) {
    if (!is_known(found.label()) && !adopt_job(found, now)) {
      return; // the store does not answer: once more, later
    }
  }
  v1::FabricRecord next = fabric_;
  next.clear_adopts();
  next.clear_adopts_without();
  if (save({{kFabricKey, next.SerializeAsString()}})) {
    fabric_ = next;
    adopts_.clear();
    outside_.note("has_adopted", "all jobs that switches have rings of are in the store");
  }
}

/// Jobs of an old store of which switches know better. They are over: no switch has a ring of
/// theirs, or one has another job's ring of the same number. Or they were placing: perhaps they
/// run.
bool Loop::drop_outdated() {
  std::vector<std::uint64_t> outdated;
  for (const auto& [id, record] : records_) {
    const Traces traces = traces_of(record);
    if (record.state() == v1::JobRecord::PLACING || traces.own == 0 || traces.of_others != 0) {
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
      if (!at || !switches_[*at].labels.contains(ring.id())) {
        continue;
      }
      const v1::FabricLabel& label = switches_[*at].labels.at(ring.id());
      ++(label.request_id() == record.request().request_id() ? traces.own : traces.of_others);
    }
  }
  return traces;
}

/// Of jobs by one request the last: when it was asked for, no manager knew of the ones before.
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
      const std::string& request = label->second.request_id();
      FoundJob& found = by_request.try_emplace(request, site_, label->second).first->second;
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
  return found;
}

bool Loop::is_known(const v1::FabricLabel& label) const {
  return std::ranges::any_of(records_, [&](const auto& entry) {
    return entry.second.request().request_id() == label.request_id();
  });
}

/// False: it could not be stored.
bool Loop::adopt_job(const FoundJob& found, Time now) {
  const v1::FabricLabel& label = found.label();
  v1::JobRecord record = found.record();
  v1::FabricRecord fabric = fabric_;
  if (records_.contains(record.id())) { // of an old store, whose number it is too
    record.set_id(fabric.next_job());
    fabric.set_next_job(fabric.next_job() + 1);
  }
  std::vector<store::Change> changes;
  std::optional<v1::AllocationRecord> allocation;
  if (!label.allocation().empty()) {
    allocation = allocation_of(label, record);
    record.mutable_request()->set_allocation(allocation->id());
    fabric.set_next_allocation(std::max(fabric.next_allocation(), allocation->id() + 1));
    changes.push_back({allocation_key(allocation->id()), allocation->SerializeAsString()});
  }
  changes.push_back({kFabricKey, fabric.SerializeAsString()});
  changes.push_back({job_key(record.id()), record.SerializeAsString()});
  if (!save(changes)) {
    return false;
  }
  fabric_ = fabric;
  if (allocation) {
    allocations_[allocation->id()] = *allocation;
  }
  const bool is_whole = record.state() == v1::JobRecord::PLACED;
  outside_.note(is_whole ? "adopted" : "not_adopted",
                fmt::format("job {} ({}, {} hosts){}", record.id(), label.name(),
                            label.positions_size(),
                            is_whole ? "" : fmt::format(" ends: {}", record.why())));
  records_[record.id()] = record;
  take_up(record.id(), now);
  return true;
}

} // namespace weir::jobs
