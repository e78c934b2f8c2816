// SPDX-License-Identifier: BSD-3-Clause
#include "stage/fair_queue.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

namespace weir::stage {
namespace {

constexpr std::uint64_t kMsPerSecond = 1000;

std::uint32_t cost_of(std::uint32_t bytes) {
  return std::min(bytes + FairQueue::kFrameCost, FairQueue::kQuantum);
}

std::uint64_t depth_for(std::uint64_t rate) {
  return std::max(FairQueue::kSmallestBurst, rate * FairQueue::kBurstMs / kMsPerSecond);
}

} // namespace

FairQueue::FairQueue(std::uint32_t room) : places_(room), free_(room == 0 ? kNone : 0) {
  for (std::uint32_t place = 0; place + 1 < room; ++place) {
    places_[place].next = place + 1;
  }
}

void FairQueue::resize(std::size_t ring_groups) {
  if (ring_groups > ring_groups_) {
    insert_lines(ring_groups_, ring_groups - ring_groups_);
    ring_groups_ = ring_groups;
  }
}

void FairQueue::resize_for_regions(std::size_t regions) {
  lines_.resize(std::max(lines_.size(), ring_groups_ + 1 + regions));
}

/// Those behind get other numbers.
void FairQueue::insert_lines(std::size_t place, std::size_t count) {
  const auto shift = [&](std::uint32_t& line) {
    line += line != kNone && line >= place ? static_cast<std::uint32_t>(count) : 0;
  };
  const auto shift_row = [&](Row& row) {
    shift(row.first);
    shift(row.last);
  };
  for (Line& line : lines_) {
    shift(line.next);
  }
  shift_row(circle_);
  for (Tenant& tenant : tenants_) {
    shift_row(tenant.aside);
  }
  lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(place), count, Line{});
}

void FairQueue::set_rate(std::uint16_t tenant, std::uint64_t rate, frame::Instant now) {
  tenants_.resize(std::max<std::size_t>(tenants_.size(), tenant + 1u));
  std::optional<TokenBucket>& bucket = tenants_[tenant].bucket;
  if (rate == 0) {
    bucket.reset();
  } else if (bucket) {
    bucket->set(rate, depth_for(rate), now.ns);
  } else {
    bucket.emplace(rate, depth_for(rate), now.ns);
  }
  rates_ = static_cast<std::size_t>(
      std::ranges::count_if(tenants_, [](const Tenant& one) { return one.bucket.has_value(); }));
}

/// nullptr: the line's frames need no tokens.
const FairQueue::Tenant* FairQueue::limited_tenant_of(const Line& line) const {
  const bool is_limited = line.tenant < tenants_.size() && tenants_[line.tenant].bucket;
  return is_limited ? &tenants_[line.tenant] : nullptr;
}

FairQueue::Tenant* FairQueue::limited_tenant_of(const Line& line) {
  return const_cast<Tenant*>(std::as_const(*this).limited_tenant_of(line));
}

std::uint64_t FairQueue::rate_of(std::uint16_t ring_group) const {
  const Tenant* tenant =
      ring_group < lines_.size() ? limited_tenant_of(lines_[ring_group]) : nullptr;
  return tenant == nullptr ? 0 : tenant->bucket->rate();
}

bool FairQueue::has_token(const Line& line) const {
  const Tenant* tenant = limited_tenant_of(line);
  return tenant == nullptr || tenant->bucket->has_token();
}

std::uint64_t FairQueue::longest(const Line& line) const {
  const Tenant* tenant = limited_tenant_of(line);
  return tenant == nullptr
             ? std::numeric_limits<std::uint64_t>::max()
             : std::max(kShortestLine, tenant->bucket->rate() * kLongestWaitMs / kMsPerSecond);
}

void FairQueue::push(Row& row, std::uint32_t ring_group) {
  lines_[ring_group].next = kNone;
  (row.is_empty() ? row.first : lines_[row.last].next) = ring_group;
  row.last = ring_group;
}

std::uint32_t FairQueue::pop(Row& row) {
  assert(!row.is_empty());
  return std::exchange(row.first, lines_[row.first].next);
}

bool FairQueue::passes(std::uint16_t ring_group, frame::Instant now) {
  if (!circle_.is_empty()) {
    return false;
  }
  if (Tenant* tenant = limited_tenant_of(lines_[ring_group]); tenant != nullptr) {
    tenant->bucket->refill(now.ns);
    if (!tenant->aside.is_empty() || !tenant->bucket->has_token()) {
      return false;
    }
    tenant->bucket->take();
  }
  return true;
}

bool FairQueue::may_send_again(std::uint16_t ring_group, frame::Instant now) {
  Line& line = lines_[ring_group];
  Tenant* tenant = limited_tenant_of(line);
  if (tenant != nullptr) {
    tenant->bucket->refill(now.ns);
  }
  if (!line.has_kept_token && !has_token(line)) {
    wait_for_token(ring_group, *tenant);
    return false;
  }
  return is_empty() || line.debt < kQuantum;
}

/// Otherwise the tenant's other lines would spend each token before the worker looks for something
/// to send again.
void FairQueue::wait_for_token(std::uint16_t ring_group, Tenant& tenant) {
  Line& line = lines_[ring_group];
  if (line.is_nowhere()) {
    push(tenant.aside, ring_group);
  }
  line.wants_token = true;
}

void FairQueue::charge(std::uint16_t ring_group, std::uint32_t bytes) {
  Line& line = lines_[ring_group];
  Tenant* tenant = limited_tenant_of(line);
  if (!std::exchange(line.has_kept_token, false) && tenant != nullptr &&
      tenant->bucket->has_token()) {
    tenant->bucket->take();
  }
  if (is_empty()) {
    return;
  }
  if (line.is_nowhere()) {
    join(ring_group);
  }
  line.debt += cost_of(bytes);
}

void FairQueue::charge_work(std::uint16_t ring_group, std::uint64_t ns) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max() / 2;
  if (is_empty()) {
    return;
  }
  Line& line = lines_[ring_group];
  if (line.is_nowhere()) {
    join(ring_group);
  }
  line.debt = static_cast<std::uint32_t>(std::min(line.debt + ns * kBytesPerNs, most));
}

std::optional<DropReason> FairQueue::put(frame::Frame& frame, std::uint16_t ring_group) {
  Line& line = lines_[ring_group];
  const bool is_full = line.frames >= 2 * (room() - size_);
  if (line.frames >= longest(line) || (is_full && !has_token(line))) {
    ++line.counters.over_rate;
    return DropReason::tenant_rate;
  }
  if (is_full) {
    ++line.counters.queue_full;
    return DropReason::ring_queue_full;
  }
  ++line.counters.waited;
  append(frame, ring_group);
  return std::nullopt;
}

void FairQueue::append(frame::Frame& frame, std::uint32_t ring_group) {
  Line& line = lines_[ring_group];
  assert(free_ != kNone);
  const std::uint32_t place = std::exchange(free_, places_[free_].next);
  places_[place] = {&frame, kNone, cost_of(frame.length)};
  (line.frames == 0 ? line.first : places_[line.last].next) = place;
  line.last = place;
  if (line.is_nowhere()) {
    join(ring_group);
  }
  ++line.frames;
  ++size_;
}

frame::Frame* FairQueue::pop(Line& line) {
  const std::uint32_t place = line.first;
  line.first = std::exchange(places_[place].next, free_);
  free_ = place;
  assert(line.frames != 0 && size_ != 0);
  --line.frames;
  --size_;
  return places_[place].frame;
}

/// For a line that is nowhere.
void FairQueue::join(std::uint32_t ring_group) {
  lines_[ring_group].deficit = 0;
  push(has_token(lines_[ring_group]) ? circle_ : limited_tenant_of(lines_[ring_group])->aside,
       ring_group);
}

unsigned FairQueue::take(std::span<frame::Frame*> frames, frame::Instant now) {
  if (rates_ != 0) {
    call_back(now);
  }
  unsigned taken = 0;
  while (taken < frames.size() && !circle_.is_empty()) {
    taken += serve_first(frames.subspan(taken));
  }
  return taken;
}

/// Lines that stand aside come back to the circle, one for each token.
void FairQueue::call_back(frame::Instant now) {
  for (Tenant& tenant : tenants_) {
    if (!tenant.bucket) {
      continue;
    }
    tenant.bucket->refill(now.ns);
    for (std::uint64_t tokens = tenant.bucket->tokens(); tokens != 0 && !tenant.aside.is_empty();
         --tokens) {
      give_token(tenant);
    }
  }
}

/// To the first line that stands aside. It keeps the token for what is to be sent again, or comes
/// back to the circle; each in turn where it has both.
void FairQueue::give_token(Tenant& tenant) {
  const std::uint32_t ring_group = pop(tenant.aside);
  Line& line = lines_[ring_group];
  if (!line.wants_token || (line.frames != 0 && std::exchange(line.kept_last_token, false))) {
    return push(circle_, ring_group);
  }
  tenant.bucket->take();
  line.has_kept_token = line.kept_last_token = true;
  line.wants_token = false;
  if (!line.is_nowhere()) {
    push(line.debt != 0 ? circle_ : tenant.aside, ring_group);
  }
}

/// While no frame waits, nobody has lost anything.
void FairQueue::pay(Line& line) const {
  const std::uint32_t paid = is_empty() ? line.debt : std::min(line.debt, line.deficit);
  line.debt -= paid;
  line.deficit -= std::min(paid, line.deficit);
}

/// Serves the first line until its turn ends or `frames` is full.
unsigned FairQueue::serve_first(std::span<frame::Frame*> frames) {
  Line& line = lines_[circle_.first];
  Tenant* tenant = limited_tenant_of(line);
  line.deficit += in_turn_ ? 0 : kQuantum;
  in_turn_ = true;
  pay(line);
  unsigned served = 0;
  while (line.debt != 0 || (line.frames != 0 && has_token(line))) {
    if (line.debt != 0 || places_[line.first].cost > line.deficit) {
      push(circle_, pop(circle_));
      in_turn_ = false;
      return served;
    }
    if (served == frames.size()) {
      return served; // its turn goes on
    }
    line.deficit -= places_[line.first].cost;
    if (tenant != nullptr) {
      tenant->bucket->take();
    }
    frames[served++] = pop(line);
  }
  const std::uint32_t ring_group = pop(circle_);
  in_turn_ = false;
  if (line.frames != 0) {
    join(ring_group);
  } else if (line.wants_token) {
    push(tenant->aside, ring_group);
  }
  return served;
}

void FairQueue::regroup(const std::function<std::uint16_t(const frame::Frame&)>& ring_group_of) {
  std::vector<frame::Frame*> frames;
  frames.reserve(size_);
  while (frame::Frame* frame = take_any()) {
    frames.push_back(frame);
  }
  assert(size_ == 0);
  for (frame::Frame* frame : frames) {
    append(*frame, ring_group_of(*frame));
  }
}

frame::Frame* FairQueue::take_any() {
  in_turn_ = false;
  frame::Frame* frame = take_any_of(circle_);
  for (auto tenant = tenants_.begin(); frame == nullptr && tenant != tenants_.end(); ++tenant) {
    frame = take_any_of(tenant->aside);
  }
  return frame;
}

/// Debts and wishes are forgotten with the last frame of a line.
frame::Frame* FairQueue::take_any_of(Row& row) {
  frame::Frame* frame = nullptr;
  while (frame == nullptr && !row.is_empty()) {
    Line& line = lines_[row.first];
    frame = line.frames == 0 ? nullptr : pop(line);
    if (line.frames == 0) {
      line.debt = 0;
      line.wants_token = false;
      pop(row);
    }
  }
  return frame;
}

} // namespace weir::stage
