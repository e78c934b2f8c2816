// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/loop.hpp"

#include "jobs/records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weir::jobs {
namespace {

constexpr std::uint64_t kFirstRing = std::uint64_t{1} << 31; // switches choose smaller ones
constexpr Time kRefusedAgain = 5'000;

v1::JobEvent over(const std::string& why) {
  v1::JobEvent event;
  event.mutable_over()->set_why(why);
  return event;
}

} // namespace

Loop::Loop(const Site& site, store::Store& store, Outside& outside, Identity identity)
    : site_(site), store_(store), outside_(outside), identity_(std::move(identity)),
      placer_(site.index()), switches_(site.index().switches()) {}

void Loop::begin(Time now, Origin origin) {
  begun_at_ = now;
  read_store(now);
  if (origin == Origin::backup) {
    await_claim("the store was restored from a backup", now);
  }
  step(now);
}

bool Loop::read_store(Time now) {
  read_at_ = now;
  const auto items = store_.read_all();
  if (!items) {
    is_lost_ = true;
    return false;
  }
  fabric_.Clear();
  records_.clear();
  marks_.clear();
  allocations_.clear();
  for (const store::Item& item : *items) {
    if (item.key == kFabricKey) {
      fabric_.ParseFromString(item.value);
    } else if (item.key.starts_with("job/")) {
      v1::JobRecord record;
      record.ParseFromString(item.value);
      records_[record.id()] = std::move(record);
    } else if (item.key.starts_with("mark/")) {
      marks_[item.key.substr(5)].ParseFromString(item.value);
    } else if (item.key.starts_with(kAllocationPrefix)) {
      v1::AllocationRecord record;
      record.ParseFromString(item.value);
      allocations_[record.id()] = std::move(record);
    }
  }
  if (fabric_.schema() == 0) {
    fabric_.set_schema(kSchema);
    fabric_.set_next_ring(kFirstRing);
    fabric_.set_next_job(1);
  }
  std::erase_if(care_, [&](const auto& entry) {
    if (records_.contains(entry.first)) {
      return false;
    }
    if (entry.second.call) {
      job_of_call_.erase(*entry.second.call);
      outside_.end(*entry.second.call, {Code::unavailable, "the store has no such job any more"});
    }
    return true;
  });
  for (const auto& [id, record] : records_) {
    take_up(id, now);
  }
  for (const SwitchState& state : switches_) {
    pass_ids_at(state);
  }
  for (auto& [id, care] : care_) {
    if (is_lost_ && care.owner_gone_at) {
      care.owner_gone_at = now; // who called meanwhile was refused
    }
  }
  is_lost_ = false;
  return true;
}

/// A job of which nothing is known but its record. Its owner has to come back.
void Loop::take_up(std::uint64_t id, Time now) {
  const auto [care, is_new] = care_.try_emplace(id);
  if (is_new) {
    care->second.is_found = true;
    care->second.placing_since = now;
    care->second.owner_gone_at = now;
  }
}

/// The store may be older than what its managers have made: an id is never used again.
void Loop::pass_ids_at(const SwitchState& state) {
  std::uint64_t next_ring = fabric_.next_ring();
  std::uint64_t next_job = fabric_.next_job();
  for (const v1::SeenRing& ring : state.seen.rings()) {
    next_ring = std::max(next_ring, ring.is_managed() ? std::uint64_t{ring.id()} + 1 : 0);
  }
  for (const auto& [id, label] : state.labels) {
    next_job = std::max(next_job, label.job() + 1);
  }
  if (next_ring != fabric_.next_ring() || next_job != fabric_.next_job()) {
    fabric_.set_next_ring(next_ring);
    fabric_.set_next_job(next_job);
    ids_are_stored_ = false;
  }
}

/// A number is stored before any switch hears of it. So this store is older than the ring, or
/// another one; and perhaps the job runs.
void Loop::look_for_strange_jobs(SwitchIndex at, Time now) {
  for (const auto& [ring, label] : switches_[at].labels) {
    if (label.job() >= fabric_.next_job()) {
      await_claim(
          fmt::format("{} has ring {} of job {}, a number that the store has not given yet: "
                      "it is an old store, or a new one",
                      site_.name_of(at), ring, label.job()),
          now);
      return;
    }
  }
}

/// Before such a ring is removed: the next leader will not see it.
void Loop::look_at_ids() {
  if (!ids_are_stored_ && save({{kFabricKey, fabric_.SerializeAsString()}})) {
    ids_are_stored_ = true;
  }
}

void Loop::fence(const std::string& why) {
  if (!is_over_) {
    is_over_ = true;
    outside_.stop(why);
  }
}

/// Of orders: not before a claim.
bool Loop::save(const std::vector<store::Change>& changes) {
  return !is_over_ && !is_lost_ && awaits_claim_.empty() && commit(changes);
}

/// False: the records are as they were, and so is the memory; perhaps the store is not.
bool Loop::commit(const std::vector<store::Change>& changes) {
  switch (store_.write(changes)) {
  case store::Written::done:
    return true;
  case store::Written::fenced:
    fence("another manager leads: it has the store");
    return false;
  case store::Written::lost:
    lose_store("the store does not answer; running jobs go on");
    return false;
  }
  return false;
}

/// Until it is read again, no order is given.
void Loop::lose_store(const std::string& why) {
  if (!is_lost_) {
    is_lost_ = true;
    outside_.note("store_lost", why);
  }
}

/// If it cannot be stored that a job ends, it is found placing and without an owner.
void Loop::lose_owner(std::uint64_t job, Time now) {
  Care& care = care_[job];
  care.call.reset();
  care.owner_gone_at = now;
  if (records_[job].state() == v1::JobRecord::PLACING) {
    care.is_found = true;
    care.placing_since = now;
  }
}

/// To another manager, which would think that they are gone.
void Loop::let_callers_go(const std::string& why, Time now) {
  for (const auto& [call, id] : std::exchange(job_of_call_, {})) {
    lose_owner(id, now);
    outside_.end(call, {Code::unavailable, why});
  }
  for (const Waiter& waiter : std::exchange(waiters_, {})) {
    outside_.end(waiter.call, {Code::unavailable, why});
  }
}

/// It stops by itself before another one leads. What holds is the fence at the store and at the
/// switches.
void Loop::look_at_lead(Time now) {
  const store::Leadership lead = store_.leadership();
  is_in_doubt_ = lead.standing == store::Standing::in_doubt;
  switch (lead.standing) {
  case store::Standing::leads:
    return;
  case store::Standing::in_doubt:
    lose_store("the store does not say who leads; no orders are given, and running jobs go on");
    let_callers_go("the manager does not know whether it leads", now);
    return;
  case store::Standing::stands_by:
  case store::Standing::over:
    fence(lead.leader.empty() ? "the lease on which this manager led is gone"
                              : fmt::format("another manager leads: {}", lead.leader));
  }
}

bool Loop::save(const v1::JobRecord& record) {
  if (!save({{job_key(record.id()), record.SerializeAsString()}})) {
    return false;
  }
  records_[record.id()] = record;
  return true;
}

void Loop::step(Time now) {
  last_now_ = now;
  if (is_over_) {
    return;
  }
  look_at_lead(now);
  look_at_store(now);
  if (!awaits_claim_.empty()) {
    ask_who_leads(now);
    return;
  }
  look_at_ids();
  for (SwitchIndex at = 0; at < switches_.size() && !is_over_; ++at) {
    look_at_switch(at, now);
  }
  look_at_adoption(now);
  if (is_adopting()) {
    return;
  }
  std::vector<std::uint64_t> ids;
  for (const auto& [id, record] : records_) {
    ids.push_back(id);
  }
  for (const std::uint64_t id : ids) {
    if (is_over_ || is_lost_) {
      return;
    }
    look_at_job(id, now);
  }
  look_at_waiters(now);
  for (SwitchIndex at = 0; at < switches_.size() && !is_over_ && !is_lost_; ++at) {
    give_orders(at); // what the jobs have come to
  }
}

void Loop::look_at_store(Time now) {
  if (is_lost_ && now >= read_at_ + kReadAgain && read_store(now)) {
    outside_.note("store_back", "the store answers");
  }
}

void Loop::look_at_switch(SwitchIndex at, Time now) {
  SwitchState& state = switches_[at];
  const bool is_away = state.reach == Reach::unreached || state.reach == Reach::refused;
  if (is_away && !is_lost_ && now >= state.claim_at) {
    state.reach = Reach::claiming;
    v1::ClaimFabricRequest request;
    request.set_fabric(site_.fabric);
    request.set_manager(identity_.manager);
    write(identity_.term, *request.mutable_term());
    outside_.claim(at, request);
  }
  if (state.reach == Reach::serving && !state.is_suspect && now > state.beat_at + kBeatLost) {
    state.is_suspect = true;
    outside_.note("switch_suspect",
                  fmt::format("{} has not been heard for {} s; nothing new is placed on it",
                              site_.name_of(at), kBeatLost / 1000));
  }
  if (!is_lost_ && state.is_fresh) {
    compare(at, now);
  }
}

/// Where one has, another that refuses this term is alone: it was away when a leader was followed.
bool Loop::has_taken_any() const {
  return std::ranges::any_of(switches_, &SwitchState::has_taken);
}

void Loop::on_claimed(SwitchIndex at, const Outcome& outcome, const v1::ClaimFabricResponse& answer,
                      Time now) {
  SwitchState& state = switches_[at];
  if (is_over_ || state.reach != Reach::claiming) {
    return;
  }
  if (outcome.code == Code::over && !has_taken_any()) {
    await_claim(fmt::format("{}: {}", site_.name_of(at), outcome.words), now);
  }
  if (!awaits_claim_.empty()) {
    note_holder(at, outcome, answer, now);
    return;
  }
  state.has_told = true;
  if (outcome.code == Code::over && state.has_taken) {
    fence(outcome.words);
    return;
  }
  switch (outcome.code) {
  case Code::ok: {
    state.has_taken = true;
    note_boot(at, answer.boot());
    state.reach = Reach::claimed;
    state.why.clear();
    state.is_fresh = false;
    v1::WatchSwitchRequest request;
    request.set_fabric(site_.fabric);
    write(identity_.term, *request.mutable_term());
    request.set_with_rings(is_adopting());
    outside_.watch(at, request);
    break;
  }
  case Code::no_answer:
    state.reach = Reach::unreached;
    state.why = outcome.words;
    state.claim_at = now + kClaimAgain;
    break;
  default:
    if (state.why != outcome.words) {
      outside_.note("switch_refuses", fmt::format("{}: {}", site_.name_of(at), outcome.words));
    }
    state.reach = Reach::refused;
    state.why = outcome.words;
    state.claim_at = now + kRefusedAgain;
  }
  step(now);
}

/// A switch that has restarted has none of its rings. The term outlives that: it is on its disk.
void Loop::note_boot(SwitchIndex at, const std::string& boot) {
  SwitchState& state = switches_[at];
  const bool has_restarted = !state.boot.empty() && state.boot != boot;
  state.boot = boot;
  if (!has_restarted) {
    return;
  }
  state.settled_order = 0;
  state.labels.clear();
  state.rings.clear();
  outside_.note("switch_restarted", fmt::format("{} has restarted", site_.name_of(at)));
  for (auto& [id, care] : care_) {
    care.made_at.erase(at);
  }
}

void Loop::on_watch_ended(SwitchIndex at, const Outcome& outcome, Time now) {
  SwitchState& state = switches_[at];
  if (is_over_ || (state.reach != Reach::serving && state.reach != Reach::claimed)) {
    return;
  }
  if (outcome.code == Code::over) {
    fence(outcome.words);
    return;
  }
  outside_.note("switch_lost",
                fmt::format("{} is not reached: {}", site_.name_of(at), outcome.words));
  state.reach = Reach::unreached;
  state.is_fresh = false;
  state.why = outcome.words;
  state.claim_at = now;
  step(now);
}

void Loop::on_seen(SwitchIndex at, const v1::SwitchSeen& seen, Time now) {
  SwitchState& state = switches_[at];
  const bool is_watched = state.reach == Reach::serving || state.reach == Reach::claimed;
  if (is_over_ || !is_watched) {
    return;
  }
  note_boot(at, seen.boot()); // it may have restarted between the claim and the watch
  if (state.is_suspect) {
    outside_.note("switch_back", fmt::format("{} is heard again", site_.name_of(at)));
  }
  state.beat_at = now;
  state.is_suspect = false;
  state.reach = Reach::serving;
  if (seen.last_order() < state.settled_order) {
    step(now); // it is older than what the switch has answered since
    return;
  }
  state.seen = seen;
  state.is_fresh = true;
  for (const v1::SeenRing& ring : seen.rings()) {
    if (ring.has_label()) {
      state.labels[ring.id()] = ring.label();
    }
    if (ring.has_ring()) {
      state.rings[ring.id()] = ring.ring();
    }
  }
  look_for_strange_jobs(at, now);
  pass_ids_at(state);
  std::map<std::string, Time> down;
  for (const v1::SeenPort& port : seen.ports()) {
    if (port.is_down()) {
      const auto before = state.down_since.find(port.name());
      down[port.name()] = before == state.down_since.end() ? now : before->second;
    }
  }
  state.down_since = std::move(down);
  step(now);
}

/// What runs is, for what runs, what the switch says.
void Loop::compare(SwitchIndex at, Time now) {
  SwitchState& state = switches_[at];
  std::set<std::uint32_t> there;
  for (const v1::SeenRing& ring : state.seen.rings()) {
    if (ring.is_managed()) {
      there.insert(ring.id());
    }
  }
  std::vector<std::pair<std::uint64_t, std::string>> failed;
  for (const auto& [id, record] : records_) {
    if (record.state() != v1::JobRecord::PLACED) {
      continue;
    }
    for (const v1::RingRecord& ring : record.rings()) {
      for (const v1::PartRecord& part : ring.parts()) {
        if (part.switch_name() != site_.name_of(at) || there.contains(ring.id())) {
          continue;
        }
        failed.emplace_back(
            id, part.boot() == state.boot
                    ? fmt::format("ring {} was withdrawn at {}", ring.id(), part.switch_name())
                    : fmt::format("{} has restarted", part.switch_name()));
      }
    }
  }
  for (const auto& [id, why] : failed) {
    if (records_[id].state() == v1::JobRecord::PLACED) {
      ++counts_.drift[kRingMissing];
      begin_end(id, why, now);
    }
  }
}

std::vector<SwitchIndex> Loop::switches_of(const v1::JobRecord& record) const {
  std::set<SwitchIndex> found;
  for (const v1::RingRecord& ring : record.rings()) {
    for (const v1::PartRecord& part : ring.parts()) {
      if (const auto at = site_.switch_named(part.switch_name())) {
        found.insert(*at);
      }
    }
  }
  return {found.begin(), found.end()};
}

void Loop::look_at_job(std::uint64_t id, Time now) {
  const auto found = records_.find(id);
  if (found == records_.end()) {
    return;
  }
  if (has_lost_allocation(found->second)) {
    begin_end(id, fmt::format("allocation {} has ended", found->second.allocation()), now);
  }
  v1::JobRecord& record = found->second;
  Care& care = care_[id];
  const std::vector<SwitchIndex> parts = switches_of(record);
  switch (record.state()) {
  case v1::JobRecord::PLACING: {
    const auto missing =
        std::ranges::find_if(parts, [&](SwitchIndex at) { return !care.made_at.contains(at); });
    if (care.is_found && !care.call) {
      if (now >= care.placing_since + kOwnerReturns) {
        begin_end(id, "its owner has not come back to the new leader", now);
      }
      return;
    }
    if (missing == parts.end()) {
      v1::JobRecord placed = record;
      placed.set_state(v1::JobRecord::PLACED);
      for (v1::RingRecord& ring : *placed.mutable_rings()) {
        for (v1::PartRecord& part : *ring.mutable_parts()) {
          part.set_boot(care.made_at[*site_.switch_named(part.switch_name())]);
        }
      }
      if (save(placed)) {
        tell_placed(placed, care);
      }
    } else if (now >= care.placing_since + kPlacingPatience) {
      begin_end(id,
                fmt::format("{} did not make the ring within {} s", site_.name_of(*missing),
                            kPlacingPatience / 1000),
                now);
    }
    return;
  }
  case v1::JobRecord::PLACED:
    if (care.call && !care.was_told) { // it was stored, and the store's answer was lost
      tell_placed(record, care);
    }
    look_at_owner(record, care, now);
    if (records_.contains(id) && records_[id].state() == v1::JobRecord::PLACED) {
      look_for_trouble(records_[id], care, now);
    }
    return;
  case v1::JobRecord::ENDING:
    tell_end(care, record.why()); // the same
    if (std::ranges::all_of(parts, [&](SwitchIndex at) { return care.gone_at.contains(at); })) {
      finish(id);
    }
    return;
  default:
    return;
  }
}

/// Formed jobs may run without their owner's call: they end when nobody has been heard either.
void Loop::look_at_owner(v1::JobRecord& record, Care& care, Time now) {
  if (care.call || !care.owner_gone_at || now < *care.owner_gone_at + kOwnerAway) {
    return;
  }
  for (const v1::RingRecord& ring : record.rings()) {
    for (const v1::PartRecord& part : ring.parts()) {
      const auto at = site_.switch_named(part.switch_name());
      if (!at || !switches_[*at].is_fresh || switches_[*at].is_suspect) {
        return;
      }
      const auto& rings = switches_[*at].seen.rings();
      const auto seen = std::ranges::find(rings, ring.id(), &v1::SeenRing::id);
      if (seen == rings.end() || seen->silent_ms() < kSilence) {
        return;
      }
    }
  }
  begin_end(record.id(),
            fmt::format("its owner is gone for {} s, and no member was heard for {} s",
                        kOwnerAway / 1000, kSilence / 1000),
            now);
}

/// Why nothing passes by the link: a switch says so of its port. Absent: it is up.
std::optional<std::string> Loop::cut_of(plan::LinkId link) const {
  const plan::LinkId there = plan::Topology::reverse_of(link);
  for (const plan::LinkId end : {link, there}) {
    const plan::VertexId from = site_.topology().link(end).from;
    if (site_.topology().is_node(from)) {
      continue;
    }
    const SwitchState& state = switches_[site_.index().switch_at(from)];
    if (state.down_since.contains(site_.ports[end])) {
      return fmt::format("{} {} – {} {} is down", site_.topology().name(from), site_.ports[end],
                         site_.topology().name(site_.topology().link(end).to),
                         site_.ports[plan::Topology::reverse_of(end)]);
    }
  }
  return std::nullopt;
}

/// Who has drained the link, named from either of its ends. Absent: nobody.
std::optional<std::string> Loop::link_mark(plan::LinkId link) const {
  const std::string one = site_.topology().name(site_.topology().link(link).from);
  const std::string other = site_.topology().name(site_.topology().link(link).to);
  const auto marked = mark("link", fmt::format("{}-{}", one, other));
  return marked ? marked : mark("link", fmt::format("{}-{}", other, one));
}

/// Whether nothing new comes on it.
bool Loop::is_shut(plan::LinkId link, std::string* why) const {
  const auto cut = cut_of(link);
  const auto words = cut ? cut : link_mark(link);
  if (words && why != nullptr) {
    *why = *words;
  }
  return words.has_value();
}

bool Loop::is_out(SwitchIndex at, std::string* why) const {
  const SwitchState& state = switches_[at];
  std::string words;
  if (const auto marked = mark("switch", site_.name_of(at))) {
    words = *marked;
  } else if (state.reach != Reach::serving) {
    words = fmt::format("{} is not reached{}{}", site_.name_of(at), state.why.empty() ? "" : ": ",
                        state.why);
  } else if (state.is_suspect) {
    words = fmt::format("{} has not been heard for {} s", site_.name_of(at), kBeatLost / 1000);
  }
  if (why != nullptr) {
    *why = words;
  }
  return !words.empty();
}

std::optional<std::string> Loop::mark(const std::string& kind, const std::string& name) const {
  const auto marked = marks_.find(fmt::format("{}/{}", kind, name));
  if (marked == marks_.end()) {
    return std::nullopt;
  }
  return fmt::format("{} {} is drained by {}: {}", kind, name, marked->second.who(),
                     marked->second.why());
}

/// The owner learns it; the manager ends nothing for it.
void Loop::look_for_trouble(const v1::JobRecord& record, Care& care, Time now) {
  std::set<std::string> troubles;
  for (const v1::RingRecord& ring : record.rings()) {
    for (const v1::PartRecord& part : ring.parts()) {
      const auto at = site_.switch_named(part.switch_name());
      if (!at) {
        continue;
      }
      const SwitchState& state = switches_[*at];
      const bool is_away = state.reach != Reach::serving && state.reach != Reach::claimed;
      const bool may_be_missed = now >= begun_at_ + kBeatLost; // a new leader claims them first
      if ((is_away && may_be_missed) || state.is_suspect) {
        troubles.insert(fmt::format("{} is not reached", part.switch_name()));
      }
      std::vector<std::string> ports;
      if (part.ring().has_parent()) {
        ports.push_back(part.ring().parent().port());
      }
      for (const v1::Child& child : part.ring().children()) {
        ports.push_back(child.port());
      }
      for (const std::string& port : ports) {
        const auto down = state.down_since.find(port);
        if (down != state.down_since.end() && now >= down->second + kLinkDown) {
          troubles.insert(
              fmt::format("ring {}: {} {} is down", ring.id(), part.switch_name(), port));
        }
      }
    }
  }
  if (troubles == care.troubles) {
    return;
  }
  for (const std::string& trouble : troubles) {
    if (!care.troubles.contains(trouble)) {
      outside_.note("job_trouble", fmt::format("job {}: {}", record.id(), trouble));
      if (care.call) {
        v1::JobEvent event;
        event.mutable_trouble()->set_what(trouble);
        outside_.tell(*care.call, event);
      }
    }
  }
  if (troubles.empty() && care.call) {
    v1::JobEvent event;
    event.mutable_well();
    outside_.tell(*care.call, event);
  }
  care.troubles = std::move(troubles);
}

void Loop::begin_end(std::uint64_t id, const std::string& why, Time now) {
  const auto found = records_.find(id);
  if (found == records_.end() || found->second.state() == v1::JobRecord::ENDING) {
    return;
  }
  v1::JobRecord ending = found->second;
  ending.set_state(v1::JobRecord::ENDING);
  ending.set_why(why);
  if (!save(ending)) {
    return; // the next step tries again, from what the store has
  }
  outside_.note("job_ends", fmt::format("job {} ({}): {}", id, ending.request().name(), why));
  Care& care = care_[id];
  care.gone_at.clear();
  care.placing_since = now;
  tell_end(care, why);
}

/// Of a job to its owner, if he calls.
void Loop::tell_end(Care& care, const std::string& why) {
  if (!care.call) {
    return;
  }
  const CallId call = *std::exchange(care.call, std::nullopt);
  job_of_call_.erase(call);
  if (care.was_told) {
    outside_.tell(call, over(why));
  }
  outside_.end(call, {Code::aborted, why});
}

void Loop::finish(std::uint64_t id) {
  if (!save({{job_key(id), std::nullopt}})) {
    return;
  }
  records_.erase(id);
  care_.erase(id);
}

void Loop::on_time(Time now) {
  step(now);
}

void Loop::on_call_ended(CallId call, Time now) {
  if (is_over_) {
    return;
  }
  const auto waited =
      std::erase_if(waiters_, [&](const Waiter& waiter) { return waiter.call == call; });
  const auto found = job_of_call_.find(call);
  if (found != job_of_call_.end()) {
    const std::uint64_t id = found->second;
    job_of_call_.erase(found);
    lose_owner(id, now);
    if (records_[id].state() == v1::JobRecord::PLACING) {
      begin_end(id, "its owner was gone before it had rings", now);
    }
  } else if (waited == 0) {
    return; // one that was refused changes nothing, and a step costs
  }
  step(now);
}

} // namespace weir::jobs
