// SPDX-License-Identifier: BSD-3-Clause
#include "control/region_admin.hpp"

#include "control/chassis.hpp"
#include "lcore/clock.hpp"
#include "random/random_bytes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <new>
#include <set>
#include <string_view>
#include <utility>

namespace weir::control {

using lcore::Quiesce;
using region::State;

namespace {

/// What does not change of a region, and room for the rest.
RegionSeen outline_of(const region::Region& region, const std::string& tenant, std::size_t place) {
  RegionSeen outline{.spec = region.spec(), .tenant = tenant, .place = place};
  outline.members.resize(outline.spec.members.size());
  return outline;
}

/// While its lcore stands still.
void observe(const region::Region& region, const stage::Worker& worker, RegionSeen& seen) {
  const frame::Instant now = lcore::Clock().now();
  seen.state = region.state();
  seen.why_ended = region.why_ended();
  seen.culprit = region.culprit();
  seen.counters = region.counters();
  if (worker.regions().with_id(seen.spec.id) == &region) { // else its line may be another's
    const stage::FairQueue& lines = worker.queue().lines();
    seen.line = stage::snapshot_line(lines, lines.line_of_region(region.line()));
  }
  seen.held = region.held();
  seen.entries_used = region.entries_used();
  for (std::uint16_t member = 0; member < seen.members.size(); ++member) {
    seen.members[member] = {.has_said_hello = region.has_heard(member),
                            .held = region.held_of(member),
                            .unacknowledged = region.unacknowledged_by(member),
                            .reads = region.unanswered_reads_of(member),
                            .waited_for_ns = region.waits_for(member, now)};
  }
}

bool may_see(std::string_view tenant, const Principal& principal) {
  return principal.is_operator() || tenant == principal.tenant;
}

} // namespace

RegionAdmin::RegionAdmin(Chassis& chassis) : chassis_(chassis), admission_(chassis.at_start) {}

MadeRegion RegionAdmin::hold(const WantedRegion& wanted, const Principal& principal) {
  MadeRegion made = plan(wanted, principal);
  try {
    enter(made, make(made));
  } catch (...) { // there is no memory, or an lcore does not stop
    const WriterLock lock(chassis_.one_writer);
    planned_.erase(made.spec.id);
    throw;
  }
  return made;
}

/// From now on the region has its numbers, and counts for the rooms.
MadeRegion RegionAdmin::plan(const WantedRegion& wanted, const Principal& principal) {
  Remains remains; // freed without the lock
  const WriterLock lock(chassis_.one_writer);
  admission_.check(wanted, principal, chassis_.config.read(lock).ports);
  check_ports(wanted.spec, principal, lock);
  check_stays();
  remains = note_ends(lock);
  admission_.check_room(wanted, held());
  region::RegionSpec spec = wanted.spec;
  spec.id = ++last_id_;
  const region::RegionBirth birth = draw(spec);
  return planned_.try_emplace(spec.id, MadeRegion{spec, birth, wanted.tenant}).first->second;
}

void RegionAdmin::check_stays() const {
  if (is_draining_) {
    throw RegionRefused("this switch is about to stop; allowed: no new region");
  }
}

/// By a port to another switch comes what hosts behind it send, whoever's they are.
void RegionAdmin::check_ports(const region::RegionSpec& spec, const Principal& principal,
                              const WriterLock& lock) const {
  for (std::size_t member = 0; member < spec.members.size(); ++member) {
    principal.check_may_name({fmt::format("members[{}].port", member), spec.members[member].port},
                             chassis_.rings.read(lock), chassis_.config.read(lock).ports);
  }
}

void RegionAdmin::enter(const MadeRegion& plan, std::unique_ptr<region::Region> made) {
  const std::uint32_t id = plan.spec.id;
  const WriterLock lock(chassis_.one_writer);
  // Meanwhile a drain may have begun, and a reload may have changed the ports.
  check_stays();
  admission_.check_ports(plan.spec, chassis_.config.read(lock).ports);
  records_.try_emplace(id,
                       Record{.tenant = plan.tenant, .place = free_place(), .region = made.get()});
  try {
    const Quiesce quiesced(chassis_.lcores);
    share_rates(lock, quiesced);
    chassis_.worker_of_regions(quiesced).adopt_region(
        std::move(made), chassis_.tenants.number_of(plan.tenant), lcore::Clock().now());
  } catch (...) {
    records_.erase(id);
    throw;
  }
  planned_.erase(id);
}

/// Among the tenants that have regions, ended ones too, whose members still send.
void RegionAdmin::share_rates(const WriterLock& lock, const Quiesce& quiesced) {
  std::set<std::string> holders;
  for (const auto& entry : records_) {
    holders.insert(entry.second.tenant);
  }
  std::set<std::string>& known = chassis_.region_holders.change(lock, quiesced);
  if (holders != known) {
    known = std::move(holders);
    chassis_.give(chassis_.shares(chassis_.rings.read(lock), chassis_.placement.read(lock), lock),
                  quiesced);
  }
}

/// It has ended since somebody looked, and its room is free. No lcore stops for the question.
bool RegionAdmin::has_news(const Records::value_type& record) {
  return !record.second.forgotten_ns && record.second.region->has_let_go();
}

/// Its members ask no more.
bool RegionAdmin::is_due(const Records::value_type& record) {
  const auto& forgotten_ns = record.second.forgotten_ns;
  return forgotten_ns && *forgotten_ns <= lcore::Clock().now().ns;
}

std::vector<RegionHeld> RegionAdmin::held() const {
  std::vector<RegionHeld> held;
  for (const auto& [id, plan] : planned_) {
    held.push_back({plan.spec, plan.tenant});
  }
  for (const auto& [id, record] : records_) {
    if (!record.forgotten_ns) {
      held.push_back({record.region->spec(), record.tenant});
    }
  }
  return held;
}

/// The lowest one: ids are given once, and what is told of regions by their places has an end.
std::size_t RegionAdmin::free_place() const {
  std::set<std::size_t> taken;
  for (const auto& [id, record] : records_) {
    if (!record.forgotten_ns) {
      taken.insert(record.place);
    }
  }
  std::size_t place = 0;
  while (taken.contains(place)) {
    ++place;
  }
  return place;
}

region::RegionBirth RegionAdmin::draw(const region::RegionSpec& spec) const {
  std::set<std::uint32_t> taken;
  const auto take = [&taken](const region::RegionBirth& birth) {
    for (const region::MemberBirth& member : birth.members) {
      taken.insert(member.queue_pair);
    }
  };
  for (const auto& [id, plan] : planned_) {
    take(plan.birth);
  }
  for (const auto& [id, record] : records_) {
    take(record.region->birth());
  }
  return region::draw_birth(spec, random_as<std::uint64_t>,
                            [&](std::uint32_t number) { return taken.contains(number); });
}

/// Without the lock: for the largest region it takes a third of a second.
std::unique_ptr<region::Region> RegionAdmin::make(const MadeRegion& plan) const {
  const auto table = [this]() -> const region::RegionTable& {
    const WriterLock lock(chassis_.one_writer);
    return chassis_.worker_of_regions(lock).regions();
  };
  try {
    return table().make(plan.spec, plan.birth);
  } catch (const std::bad_alloc&) {
    throw NoRoomForRegion("no memory for what the region has under way; allowed: fewer members or "
                          "a smaller window");
  }
}

/// A tenant finds its own: of another one's it learns nothing, not even that there is one.
RegionAdmin::Records::iterator RegionAdmin::record_of(std::uint32_t id,
                                                      const Principal& principal) {
  const auto found = records_.find(id);
  if (found != records_.end() && may_see(found->second.tenant, principal)) {
    return found;
  }
  std::vector<std::uint32_t> ids;
  for (const auto& [other, record] : records_) {
    if (may_see(record.tenant, principal)) {
      ids.push_back(other);
    }
  }
  throw NoSuchRegion(
      fmt::format("region: found {}; allowed: {}", id,
                  ids.empty() ? "there is none" : fmt::format("{}", fmt::join(ids, ", "))));
}

void RegionAdmin::drain_all() {
  const WriterLock lock(chassis_.one_writer);
  is_draining_ = true;
}

void RegionAdmin::withdraw(std::uint32_t id, const Principal& principal) {
  Remains remains; // freed without the lock
  const WriterLock lock(chassis_.one_writer);
  const auto found = record_of(id, principal);
  {
    const Quiesce quiesced(chassis_.lcores);
    chassis_.worker_of_regions(quiesced).withdraw_region(*found->second.region,
                                                         lcore::Clock().now());
  }
  remains = note_ends(lock);
}

void RegionAdmin::withdraw_orphan(std::uint32_t id) {
  try {
    withdraw(id, {});
  } catch (const NoSuchRegion&) { // it has ended long ago
  }
}

/// What one tenant's regions leave displaces nothing of another's.
std::size_t RegionAdmin::most_ended(const std::string& tenant) const {
  const std::uint64_t all = chassis_.at_start.regions->rooms.regions;
  return tenant.empty() ? all : admission_.most_of(tenant).regions;
}

/// An lcore that has forgotten a region has no room for it in the end: it is the caller's to free.
/// So is what an ended one needs no more.
RegionAdmin::Remains RegionAdmin::note_ends(const WriterLock& lock) {
  std::map<std::uint32_t, RegionSeen> ended = outlines_of_news();
  Remains remains;
  if (ended.empty() && std::ranges::none_of(records_, is_due)) {
    return remains;
  }
  remains.storage.reserve(ended.size());
  {
    const Quiesce quiesced(chassis_.lcores);
    for (auto& [id, seen] : ended) {
      region::Region& region = *records_.at(id).region;
      observe(region, chassis_.worker_of_regions(quiesced), seen);
      remains.storage.push_back(region.give_storage());
    }
    forget_surplus(ended, quiesced);
    remains.forgotten = chassis_.worker_of_regions(quiesced).regions().take_forgotten();
    for (const auto& region :
         remains.forgotten) { // first: what follows may throw, and they go then
      records_.erase(region->spec().id);
    }
    share_rates(lock, quiesced);
  }
  for (auto& [id, seen] : ended) {
    if (const auto record = records_.find(id); record != records_.end()) {
      record->second.forgotten_ns =
          lcore::Clock().now().ns + seen.spec.patience_ms * frame::kNsPerMs;
    }
  }
  for (const auto& [id, region] : ended) {
    note_end(region);
  }
  return remains;
}

std::map<std::uint32_t, RegionSeen> RegionAdmin::outlines_of_news() const {
  std::map<std::uint32_t, RegionSeen> outlines;
  for (const auto& entry : records_) {
    if (has_news(entry)) {
      outlines.emplace(entry.first,
                       outline_of(*entry.second.region, entry.second.tenant, entry.second.place));
    }
  }
  return outlines;
}

/// The oldest ones of a tenant that has more ended ones than it may have. `ended`: just now.
void RegionAdmin::forget_surplus(const std::map<std::uint32_t, RegionSeen>& ended,
                                 const Quiesce& quiesced) {
  std::map<std::string_view, std::size_t> kept;
  for (auto record = records_.rbegin(); record != records_.rend(); ++record) {
    const Record& one = record->second;
    if ((one.forgotten_ns || ended.contains(record->first)) &&
        ++kept[one.tenant] > most_ended(one.tenant)) {
      chassis_.worker_of_regions(quiesced).regions().forget(*one.region);
    }
  }
}

void RegionAdmin::note_end(const RegionSeen& region) {
  const region::End why = region.why_ended.value_or(region::End::withdrawn);
  ++ends_of_[region.tenant][static_cast<std::size_t>(why)];
  const std::string reason = reason_in_words(region);
  ends_.push_back({region.spec.id, reason});
  if (ends_.size() > kEndsKept) {
    ends_.pop_front();
  }
  tell({.kind = RegionNews::Kind::ended,
        .id = region.spec.id,
        .members = region.members.size(),
        .tenant = region.tenant,
        .why = why,
        .why_in_words = reason});
}

/// Nobody may take them.
void RegionAdmin::tell(RegionNews news) {
  news_.push_back(std::move(news));
  if (news_.size() > kEndsKept) {
    news_.pop_front();
  }
}

std::deque<RegionNews> RegionAdmin::take_news() {
  Remains remains; // freed without the lock
  const WriterLock lock(chassis_.one_writer);
  for (auto& [id, record] : records_) {
    const bool is_open = record.region->state() == State::open;
    if (is_open && !std::exchange(record.has_begun, true)) {
      tell({.kind = RegionNews::Kind::began,
            .id = id,
            .members = record.region->spec().members.size(),
            .tenant = record.tenant});
    }
  }
  remains = note_ends(lock);
  return std::exchange(news_, {});
}

std::optional<std::string> RegionAdmin::end_of(std::uint32_t id) const {
  const WriterLock lock(chassis_.one_writer);
  const auto found = std::ranges::find(ends_, id, &Ended::id);
  return found == ends_.end() ? std::nullopt : std::optional(found->reason);
}

/// Where the principal may see none, no lcore stops: it learns not even that there are any.
std::vector<RegionSeen> RegionAdmin::regions(const Principal& principal) const {
  const WriterLock lock(chassis_.one_writer);
  std::vector<RegionSeen> all;
  std::vector<const region::Region*> regions;
  for (const auto& [id, record] : records_) {
    if (may_see(record.tenant, principal)) {
      all.push_back(outline_of(*record.region, record.tenant, record.place));
      regions.push_back(record.region);
    }
  }
  if (all.empty()) {
    return all;
  }
  const Quiesce quiesced(chassis_.lcores);
  for (std::size_t place = 0; place < all.size(); ++place) {
    observe(*regions[place], chassis_.worker_of_regions(quiesced), all[place]);
  }
  return all;
}

std::vector<RegionShare> RegionAdmin::shares(const Principal& principal) const {
  const WriterLock lock(chassis_.one_writer);
  std::vector<RegionShare> shares = admission_.shares(held());
  std::erase_if(shares,
                [&](const RegionShare& share) { return !may_see(share.tenant, principal); });
  return shares;
}

RegionEnds RegionAdmin::ends(const Principal& principal) const {
  const WriterLock lock(chassis_.one_writer);
  RegionEnds sum{};
  for (const auto& [tenant, ends] : ends_of_) {
    if (may_see(tenant, principal)) {
      std::ranges::transform(sum, ends, sum.begin(), std::plus<>());
    }
  }
  return sum;
}

void RegionAdmin::discard_all() {
  const WriterLock lock(chassis_.one_writer);
  if (records_.empty()) {
    return;
  }
  const Quiesce quiesced(chassis_.lcores);
  for (const auto& [id, record] : records_) {
    chassis_.worker_of_regions(quiesced).withdraw_region(*record.region, lcore::Clock().now());
  }
  region::RegionTable& table = chassis_.worker_of_regions(quiesced).regions();
  while (table.held() != 0) {
    table.poll(lcore::Clock().now());
  }
}

} // namespace weir::control
