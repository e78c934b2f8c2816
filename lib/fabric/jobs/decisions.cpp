// SPDX-License-Identifier: BSD-3-Clause

/// What the loop answers to who asks for rings.

#include "jobs/hexadecimal.hpp"
#include "jobs/loop.hpp"
#include "jobs/records.hpp"
#include "jobs/ring_messages.hpp"
#include "jobs/words.hpp"
#include "weir/ina.hpp"
#include "weir/limits.hpp"
#include "wire/address.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace weir::jobs {
namespace {

// Answers to requests.
constexpr const char* kPlaced = "placed";
constexpr const char* kRefused = "refused";

constexpr std::size_t kKeptDecisions = 10'000;
constexpr std::size_t kKeptName = 255;
constexpr std::size_t kKeptWords = 2048;
constexpr Time kFirstClaims = 3'000;        // a new leader has others wait so long for switches
constexpr std::uint64_t kHellosOfChild = 4; // that wait, each a frame
constexpr std::uint32_t kUsualMtu = 1024;
constexpr std::size_t kRequestIdBytes = 16;
constexpr std::uint32_t kMostTrees = 64;

/// As the switch counts them.
std::uint64_t frames_per_child(const v1::HoldJobRequest& request) {
  const std::uint64_t packets = (request.message_bytes() + request.mtu() - 1) / request.mtu();
  return 2 * std::uint64_t{request.window()} * packets + kHellosOfChild;
}

std::string name_of(placement::Lack lack) {
  switch (lack) {
  case placement::Lack::rings:
    return "rings";
  case placement::Lack::members:
    return "places for members";
  case placement::Lack::frames:
    return "frames";
  case placement::Lack::bandwidth:
    return "bandwidth";
  case placement::Lack::order:
    return "order";
  case placement::Lack::tree:
    break;
  }
  return "tree";
}

/// With the defaults in place of what is 0.
v1::HoldJobRequest completed(v1::HoldJobRequest request) {
  request.set_rings_wanted(std::max(1U, request.rings_wanted()));
  request.set_rings_least(std::max(1U, request.rings_least()));
  request.set_mtu(request.mtu() == 0 ? kUsualMtu : request.mtu());
  return request;
}

void subtract(std::uint64_t amount, std::uint64_t& from) {
  from -= std::min(amount, from);
}

} // namespace

void Loop::check(const Caller& caller, const v1::HoldJobRequest& request) const {
  const auto refuse = [](const std::string& words) { throw Refused(Code::invalid, words); };
  if (request.request_id().size() != kRequestIdBytes) {
    refuse(fmt::format("request_id: found {} bytes; allowed: {}", request.request_id().size(),
                       kRequestIdBytes));
  }
  if (request.members_size() < kMinWorld || request.members_size() > kMaxWorld) {
    refuse(fmt::format("members: found {}; allowed: {} .. {}", request.members_size(), kMinWorld,
                       kMaxWorld));
  }
  if (request.window() < 1 || request.window() > kMaxWindow) {
    refuse(fmt::format("window: found {}; allowed: 1 .. {}", request.window(), kMaxWindow));
  }
  if (request.message_bytes() < kInaHeaderBytes || request.message_bytes() > kMaxMessageBytes) {
    refuse(fmt::format("message_bytes: found {}; allowed: {} .. {}", request.message_bytes(),
                       kInaHeaderBytes, kMaxMessageBytes));
  }
  if (std::ranges::find(kPathMtus, request.mtu()) == kPathMtus.end()) {
    refuse(fmt::format("mtu: found {}; allowed: {}", request.mtu(), fmt::join(kPathMtus, ", ")));
  }
  if (request.rings_wanted() > kMostTrees || request.rings_least() > request.rings_wanted()) {
    refuse(fmt::format("rings: found {} wanted, {} at least; allowed: at most {}, and no more at "
                       "least than wanted",
                       request.rings_wanted(), request.rings_least(), kMostTrees));
  }
  const auto tenant = std::ranges::find(site_.tenants, request.tenant(), &Tenant::name);
  if (!request.tenant().empty() && tenant == site_.tenants.end()) {
    refuse(fmt::format("tenant: found '{}'; allowed: a name under tenants", request.tenant()));
  }
  if (!caller.is_operator && caller.allocation == 0 && caller.name != request.tenant()) {
    throw Refused(Code::not_allowed,
                  fmt::format("tenant: found '{}'; allowed: '{}', whose certificate this is",
                              request.tenant(), caller.name));
  }
  if (request.replaces() != 0) {
    const auto replaced = records_.find(request.replaces());
    if (replaced == records_.end() || !is_owner(caller, replaced->second)) { // as if not there
      refuse(
          fmt::format("replaces: found {}; allowed: a job of the same owner", request.replaces()));
    }
  }
  if (request.tenant().empty()) {
    return;
  }
  std::uint32_t jobs = 0;
  std::uint32_t rings = 0;
  for (const auto& [id, record] : records_) {
    if (record.request().tenant() == request.tenant()) {
      ++jobs;
      rings += static_cast<std::uint32_t>(record.rings_size());
    }
  }
  const auto check_quota = [&](const char* what, std::uint32_t has, std::uint32_t may) {
    if (has >= may) {
      throw Refused(Code::exhausted,
                    fmt::format("tenant {}: needs 1 of {}, 0 are free: it has {} of {}",
                                request.tenant(), what, has, may));
    }
  };
  check_quota("jobs", jobs, tenant->jobs);
  check_quota("rings", rings, tenant->rings);
}

Loop::Wish Loop::wish_of(const Caller& caller, const v1::HoldJobRequest& request) const {
  Wish wish;
  std::map<plan::VertexId, int> rank_of;
  const auto tenant = std::ranges::find(site_.tenants, request.tenant(), &Tenant::name);
  double rate = std::numeric_limits<double>::infinity();
  for (int rank = 0; rank < request.members_size(); ++rank) {
    const Endpoint* found = nullptr;
    std::string address;
    for (const std::string& text : request.members(rank).addresses()) {
      const auto ip = wire::parse_ip(text);
      const auto endpoint = ip ? site_.endpoints.find(*ip) : site_.endpoints.end();
      if (endpoint != site_.endpoints.end()) {
        found = &endpoint->second;
        address = text;
        break;
      }
    }
    if (found == nullptr) {
      throw Refused(Code::invalid,
                    fmt::format("rank {}: found the address {}; allowed: one that a host of the "
                                "topology has",
                                rank, fmt::join(request.members(rank).addresses(), ", ")));
    }
    const std::string& host = site_.topology().name(found->host);
    const auto [before, is_new] = rank_of.emplace(found->host, rank);
    if (!is_new) {
      throw Refused(Code::invalid, fmt::format("rank {}: found {}, which rank {} has; allowed: "
                                               "each host once",
                                               rank, host, before->second));
    }
    if (tenant != site_.tenants.end() && !tenant->hosts.empty() &&
        std::ranges::find(tenant->hosts, host) == tenant->hosts.end()) {
      throw Refused(Code::not_allowed,
                    fmt::format("rank {}: found {}, which is not tenant {}'s; "
                                "allowed: {}",
                                rank, host, tenant->name, names_in_words(tenant->hosts)));
    }
    check_allocation_has(caller, rank, host);
    if (const auto marked = mark("host", host)) {
      throw Refused(Code::impossible, fmt::format("rank {}: {}", rank, *marked));
    }
    wish.request.seats.push_back(found->seat);
    wish.addresses.push_back(address);
    wish.hosts.push_back(host);
    rate = std::min(rate, site_.index().rate(plan::cable_of(found->seat.down)));
  }
  wish.request.trees = std::min(request.rings_wanted(), std::max(1U, site_.trees));
  wish.request.least = request.rings_least();
  wish.request.is_reserved = request.reserve() != 0;
  wish.request.rate = wish.request.is_reserved ? static_cast<double>(request.reserve()) : rate;
  wish.request.order = request.order() == v1::HoldJobRequest::GIVEN ? placement::Order::given
                                                                    : placement::Order::any;
  wish.request.frames_per_child = frames_per_child(request);
  return wish;
}

/// What the switches have, less what jobs have been promised: also those that are not there yet,
/// or not gone yet.
placement::Usage Loop::usage(std::uint64_t but) const {
  placement::Usage usage(site_.index());
  for (SwitchIndex at = 0; at < switches_.size(); ++at) {
    const v1::SwitchSeen& seen = switches_[at].seen;
    usage.out[at] = is_out(at) ? 1 : 0;
    usage.room[at] = {seen.room().rings(), seen.room().members(), seen.room().frames()};
    subtract(seen.others().rings(), usage.room[at].rings);
    subtract(seen.others().members(), usage.room[at].members);
    subtract(seen.others().frames(), usage.room[at].frames);
  }
  for (plan::LinkId link = 0; link < site_.topology().links().size(); link += 2) {
    usage.shut[plan::cable_of(link)] = is_shut(link) ? 1 : 0;
  }
  for (const auto& [id, record] : records_) {
    if (id == but) {
      continue;
    }
    const std::uint64_t frames = frames_per_child(record.request());
    for (const v1::RingRecord& ring : record.rings()) {
      for (const v1::PartRecord& part : ring.parts()) {
        const auto at = site_.switch_named(part.switch_name());
        if (!at) {
          continue;
        }
        const std::uint64_t children = children_of(part.ring());
        subtract(1, usage.room[*at].rings);
        subtract(children + (part.ring().has_parent() ? 1 : 0), usage.room[*at].members);
        subtract(children * frames, usage.room[*at].frames);
        if (part.has_up() && part.up() < usage.load.size()) {
          usage.load[part.up()] += record.rate();
          usage.reserved[part.up()] += record.request().reserve() != 0 ? record.rate() : 0;
        }
      }
    }
  }
  return usage;
}

std::vector<std::string> Loop::holders_at(SwitchIndex at) const {
  std::vector<std::string> holders;
  for (const auto& [id, record] : records_) {
    const auto parts = switches_of(record);
    if (std::ranges::find(parts, at) != parts.end()) {
      holders.push_back(
          fmt::format("job {} ({}, {} hosts)", id, record.request().name(), record.hosts_size()));
    }
  }
  constexpr std::size_t named = 8;
  if (holders.size() > named) {
    const std::size_t more = holders.size() - named;
    holders.resize(named);
    holders.push_back(fmt::format("{} more", more));
  }
  return holders;
}

std::string Loop::words_of(const placement::Refusal& refusal, const Wish& wish) const {
  const std::string where = refusal.where == plan::kNone ? "" : site_.name_of(refusal.where);
  switch (refusal.lack) {
  case placement::Lack::tree: {
    std::string why;
    if (!is_out(refusal.where, &why)) {
      for (const placement::Way& way : site_.index().ways(refusal.where)) {
        std::string one;
        if (is_shut(way.link, &one) || is_out(way.to, &one)) {
          why += (why.empty() ? "" : "; ") + one;
        }
      }
    }
    return fmt::format("no tree of switches reaches rank {} ({}), which is behind {} alone{}{}",
                       refusal.rank, wish.hosts[refusal.rank], where, why.empty() ? "" : ": ", why);
  }
  case placement::Lack::order:
    return fmt::format("order: found rank {} ({}) apart from the other ranks of its switch; "
                       "allowed: the ranks of each switch side by side, or any order",
                       refusal.rank, wish.hosts[refusal.rank]);
  default: {
    const auto holders = holders_at(refusal.where);
    return fmt::format("{}: needs {} {}, {} are free; held by {}", where, refusal.needs,
                       name_of(refusal.lack), refusal.free,
                       holders.empty() ? "nobody" : fmt::format("{}", fmt::join(holders, ", ")));
  }
  }
}

v1::RingRecord Loop::ring_record(const placement::Tree& tree, const placement::Placement& placement,
                                 const Wish& wish, const v1::HoldJobRequest& request,
                                 std::uint32_t id) const {
  v1::RingRecord record;
  record.set_id(id);
  record.set_shape(placement::shape_of(tree));
  v1::Ring ring;
  ring.set_id(id);
  ring.set_window(request.window());
  ring.set_max_message_bytes(request.message_bytes());
  ring.set_mtu(request.mtu());
  ring.set_nonce(request.nonce());
  for (const std::uint32_t rank : placement.rank_at) {
    ring.add_members()->set_ip(wish.addresses[rank]);
  }
  for (const placement::TreeSwitch& part : tree.switches) {
    v1::PartRecord& made = *record.add_parts();
    made.set_switch_name(site_.name_of(part.at));
    *made.mutable_ring() = ring;
    write_part(site_, part, *made.mutable_ring());
    if (part.up != plan::kNone) {
      made.set_up(plan::cable_of(part.up));
    }
  }
  return record;
}

Loop::Counts::Counts()
    : requests{{kPlaced, 0}, {kRefused, 0}}, drift{{kRingMissing, 0}, {kRingUnknown, 0}} {
  using placement::Lack;
  for (const Lack lack :
       {Lack::tree, Lack::order, Lack::rings, Lack::members, Lack::frames, Lack::bandwidth}) {
    refusals[name_of(lack)] = 0;
  }
}

/// Throws Refused.
v1::JobRecord Loop::decide(const Caller& caller, const v1::HoldJobRequest& request,
                           const placement::Usage& usage) {
  check(caller, request);
  const Wish wish = wish_of(caller, request);
  const placement::Answer answer = placer_.place(wish.request, usage);
  if (const auto* const refusal = std::get_if<placement::Refusal>(&answer)) {
    const bool is_tree = refusal->lack == placement::Lack::tree;
    const Code code = refusal->lack == placement::Lack::order ? Code::invalid
                      : is_tree                               ? Code::impossible
                                                              : Code::exhausted;
    ++counts_.refusals[name_of(refusal->lack)];
    throw Refused(code, words_of(*refusal, wish));
  }
  const auto& placement = std::get<placement::Placement>(answer);
  v1::JobRecord record;
  record.set_schema(kSchema);
  record.set_id(fabric_.next_job());
  record.set_state(v1::JobRecord::PLACING);
  *record.mutable_request() = request;
  record.set_owner(caller.name);
  if (caller.allocation != 0) {
    record.set_allocation(allocations_.at(caller.allocation).name());
    *record.mutable_token() = caller.token;
  }
  for (const placement::Tree& tree : placement.trees) {
    const auto id = static_cast<std::uint32_t>(fabric_.next_ring() +
                                               static_cast<std::uint64_t>(record.rings_size()));
    *record.add_rings() = ring_record(tree, placement, wish, request, id);
    record.set_rate(tree.rate);
  }
  record.mutable_positions()->Add(placement.position.begin(), placement.position.end());
  record.mutable_hosts()->Add(wish.hosts.begin(), wish.hosts.end());
  record.set_fold_shape(fold_shape_of(record));
  if (record.ByteSizeLong() > kMostRecordBytes) {
    throw Refused(Code::exhausted,
                  fmt::format("the job's record takes {} KiB; allowed: {}; fewer trees or hosts",
                              record.ByteSizeLong() >> 10, kMostRecordBytes >> 10));
  }
  if (!request.fold_shape().empty() && request.fold_shape() != record.fold_shape()) {
    throw Refused(Code::impossible,
                  fmt::format("fold_shape: found {}; the trees that there are now have {}, which "
                              "would give other bits",
                              request.fold_shape(), record.fold_shape()));
  }
  return record;
}

void Loop::on_hold(CallId call, const Caller& caller, const v1::HoldJobRequest& asked, Time now) {
  if (is_over_) {
    return;
  }
  last_now_ = now;
  if (is_idle()) {
    outside_.end(call, {Code::unavailable, why_idle()});
    return;
  }
  Caller who = caller;
  try {
    who = asked.allocation() == 0 ? caller : bearer_of(caller, asked.allocation(), asked.token());
  } catch (const Refused& refused) { // nothing is kept of somebody who may be anybody
    outside_.end(call, {refused.code(), refused.what()});
    return;
  }
  try {
    hold(call, who, as_of(who, completed(asked)), now);
  } catch (const Refused& refused) {
    ++counts_.requests[kRefused];
    note_decision(asked, refused.what());
    outside_.end(call, {refused.code(), refused.what()});
  }
}

/// A job that there is, or a new one.
void Loop::hold(CallId call, const Caller& caller, const v1::HoldJobRequest& request, Time now) {
  const auto found = std::ranges::find_if(records_, [&](const auto& entry) {
    return entry.second.request().request_id() == request.request_id() &&
           is_owner(caller, entry.second);
  });
  if (found != records_.end()) {
    hold_again(call, found->second, now);
    return;
  }
  const Time waits = std::max<Time>(
      request.wait_ms(), now < begun_at_ + kFirstClaims ? begun_at_ + kFirstClaims - now : 0);
  if (!place(call, caller, request, now + waits) && waits != 0 && !is_over_) {
    waiters_.push_back({.call = call, .caller = caller, .request = request, .since = now});
  }
  step(now);
}

void Loop::hold_again(CallId call, const v1::JobRecord& record, Time now) {
  if (record.state() == v1::JobRecord::ENDING) {
    outside_.end(call, {Code::aborted, record.why()});
    return;
  }
  Care& care = care_[record.id()];
  if (care.call) {
    job_of_call_.erase(*care.call);
    outside_.end(*care.call, {Code::aborted, "a later call holds the job"});
  }
  care.call = call;
  care.owner_gone_at.reset();
  if (care.is_found) {
    care.is_found = false;
    care.placing_since = now;
  }
  job_of_call_[call] = record.id();
  if (record.state() == v1::JobRecord::PLACED) {
    tell_placed(record, care);
  }
  step(now);
}

/// True: the call has its job, or its end. False: it may wait until `until`, for it lacks something
/// that may come. At a time of 0 it does not wait.
bool Loop::place(CallId call, const Caller& caller, const v1::HoldJobRequest& request, Time until) {
  v1::JobRecord record;
  try {
    record = decide(caller, request, usage(request.replaces()));
  } catch (const Refused& refused) {
    const bool may_come = refused.code() == Code::exhausted || refused.code() == Code::impossible;
    if (may_come && until > last_now_) {
      return false;
    }
    ++counts_.requests[kRefused];
    note_decision(request, refused.what());
    outside_.end(call, {refused.code(), refused.what()});
    return true;
  }
  v1::FabricRecord next = fabric_;
  next.set_next_job(fabric_.next_job() + 1);
  next.set_next_ring(fabric_.next_ring() + static_cast<std::uint64_t>(record.rings_size()));
  if (!save({{kFabricKey, next.SerializeAsString()},
             {fmt::format("job/{}", record.id()), record.SerializeAsString()}})) {
    if (!is_over_) {
      outside_.end(call, {Code::unavailable, why_idle()});
    }
    return true;
  }
  ++counts_.requests[kPlaced];
  fabric_ = next;
  const std::uint64_t id = record.id();
  note_decision(request, fmt::format("job {}: {}", id, explain_trees(record)));
  records_[id] = std::move(record);
  Care& care = care_[id];
  care.call = call;
  care.placing_since = last_now_;
  job_of_call_[call] = id;
  return true;
}

/// Younger ones may pass: each is tried in its turn, by its tenant's share, then by age.
void Loop::look_at_waiters(Time now) {
  std::deque<Waiter> waiting = std::exchange(waiters_, {});
  std::map<std::string, std::size_t> share;
  for (const auto& [id, record] : records_) {
    share[record.request().tenant()] += static_cast<std::size_t>(record.hosts_size());
  }
  std::ranges::stable_sort(waiting, {}, [&](const Waiter& waiter) {
    return std::pair(share[waiter.request.tenant()], waiter.since);
  });
  for (Waiter& waiter : waiting) {
    const Time until =
        std::max<Time>(waiter.since + waiter.request.wait_ms(), begun_at_ + kFirstClaims);
    if (!is_over_ && !is_lost_ &&
        place(waiter.call, waiter.caller, waiter.request, now < until ? until : 0)) {
      continue;
    }
    waiters_.push_back(std::move(waiter));
  }
}

void Loop::note_decision(const v1::HoldJobRequest& request, const std::string& words) {
  decisions_.push_back({hexadecimal(request.request_id().substr(0, kRequestIdBytes)),
                        beginning_of(request.name(), kKeptName), beginning_of(words, kKeptWords)});
  if (decisions_.size() > kKeptDecisions) {
    decisions_.pop_front();
  }
}

void Loop::tell_placed(const v1::JobRecord& record, Care& care) {
  care.was_told = true;
  if (!care.call) {
    return;
  }
  v1::JobEvent event;
  v1::JobPlaced& placed = *event.mutable_placed();
  placed.set_job(record.id());
  for (const v1::RingRecord& ring : record.rings()) {
    v1::JobRing& told = *placed.add_rings();
    told.set_id(ring.id());
    told.set_shape(ring.shape());
  }
  placed.set_window(record.request().window());
  placed.set_message_bytes(record.request().message_bytes());
  placed.set_mtu(record.request().mtu());
  *placed.mutable_positions() = record.positions();
  placed.set_fold_shape(record.fold_shape());
  outside_.tell(*care.call, event);
}

} // namespace weir::jobs
