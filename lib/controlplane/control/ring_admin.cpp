// SPDX-License-Identifier: BSD-3-Clause
#include "control/ring_admin.hpp"

#include "control/captures.hpp"
#include "control/chassis.hpp"
#include "control/port_rules.hpp"
#include "lcore/clock.hpp"
#include "stage/ring_life.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <new>
#include <utility>

namespace weir::control {

using lcore::Quiesce;

namespace {

constexpr std::size_t kSlotsAtOnce = 64; // that are emptied in one stop

std::uint64_t unix_now_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

std::string name_of_sender(const ring::Ring& ring, std::uint16_t sender) {
  if (ring.is_parent(sender)) {
    return "parent " + ring.parent()->name;
  }
  return ring.is_rank(sender) ? "member " + wire::to_string(ring.source_of(sender))
                              : "switch " + ring.child(sender).name;
}

/// A reload may have closed one since the ring was read.
void check_ports_are_there(const ring::RingSpec& spec,
                           const std::vector<config::PortConfig>& ports) {
  const ring::Ring ring(spec);
  for (std::uint16_t sender = 0; sender < ring.senders(); ++sender) {
    const std::optional<std::uint16_t> port = ring.port_of(sender);
    if (port && !ports.at(*port).is_there()) {
      throw RingRefused(fmt::format("ring {}: the port of {} was closed just now; allowed: a port "
                                    "that there is",
                                    spec.id, name_of_sender(ring, sender)));
    }
  }
}

/// One for each ring of the set, and room for those to come: it grows while lcores stand still.
std::vector<RingCare> first_care(const ring::RingSet& rings, const config::SpareConfig& spare) {
  std::vector<RingCare> care;
  care.reserve(rings.rings().size() + spare.rings);
  care.resize(rings.rings().size());
  return care;
}

} // namespace

struct RingAdmin::Withdrawn {
  stage::WorkerRing room;
  stage::Worker& worker;
};

RingAdmin::RingAdmin(Chassis& chassis, Captures& captures, std::optional<RingJournal> journal)
    : chassis_(chassis), captures_(captures), journal_(std::move(journal)),
      budget_(chassis.at_start.spare, *chassis.rings.share(), chassis.plan),
      care_(first_care(*chassis.rings.share(), chassis.at_start.spare)), withdrawn_(nullptr) {}

RingAdmin::~RingAdmin() = default;

/// The ring that `principal` gives an order to. The lock is held until the order's end.
std::uint16_t RingAdmin::ordered_ring(std::uint32_t id, const Principal& principal,
                                      const WriterLock& lock) const {
  const ring::RingSet& rings = chassis_.rings.read(lock);
  const std::uint16_t ring = index_of(rings, id);
  principal.check_may_order(rings.rings()[ring].spec());
  return ring;
}

ring::RingBirth RingAdmin::add(const ring::RingSpec& spec, const Principal& principal) {
  return add(spec, Keeper::members, principal);
}

ring::RingBirth RingAdmin::hold(const ring::RingSpec& spec, const Principal& principal) {
  return add(spec, Keeper::owner, principal);
}

ring::RingBirth RingAdmin::add(const ring::RingSpec& spec, Keeper keeper,
                               const Principal& principal) {
  const WriterLock lock(chassis_.one_writer);
  principal.check_may_make(spec, chassis_.rings.read(lock), chassis_.config.read(lock).ports);
  check_may_add(spec, lock);
  check_id(spec, lock);
  check_ports_are_there(spec, chassis_.config.read(lock).ports);
  const std::size_t lcore = admission(lock).add(spec);
  auto room = room_for(spec, lcore, lock);
  remember(spec, lock);
  enter(spec, lcore, std::move(*room),
        {.origin = Origin::run_time, .birth = ++last_birth_, .keeper = keeper}, lock);
  return last_birth_;
}

/// Rings that come while the switch runs must be remembered (docs/protocol.md §2a).
void RingAdmin::check_may_add(const ring::RingSpec& spec, const WriterLock&) const {
  const auto& regions = chassis_.at_start.regions;
  if (regions && std::ranges::count(spec.members, regions->address, &ring::Member::ip) != 0) {
    throw RingRefused(fmt::format("ring {}: found the member {}, which is the switch's own address "
                                  "(regions.address); allowed: a host's",
                                  spec.id, wire::to_string(regions->address)));
  }
  if (!journal_) {
    throw RingRefused(fmt::format("ring {}: this switch has no room for rings made while it runs; "
                                  "allowed: a configuration with spare: and state_directory:",
                                  spec.id));
  }
  if (is_draining_) {
    throw RingRefused(
        fmt::format("ring {}: this switch is about to stop; allowed: no new ring", spec.id));
  }
}

void RingAdmin::check_id(const ring::RingSpec& spec, const WriterLock& lock) const {
  const ring::RingSet& rings = chassis_.rings.read(lock);
  if (rings.ring_with_id(spec.id)) {
    throw RingExists(
        fmt::format("id: found {}, which a ring has; allowed: any but {}", spec.id, ids_of(rings)));
  }
}

RingAdmission RingAdmin::admission(const WriterLock& lock) const {
  RingAdmission::Free free{.places = {}, .memory = available_memory()};
  for (const auto& lcore : chassis_.lcores) {
    const stage::Worker* worker = lcore->worker();
    free.places.push_back(worker != nullptr ? worker->incarnations().spare_children() : 0);
  }
  return {chassis_.rings.read(lock),
          chassis_.placement.read(lock),
          {budget_, chassis_.tenants},
          std::move(free)};
}

std::unique_ptr<stage::WorkerRing> RingAdmin::room_if_any(const ring::RingSpec& spec,
                                                          std::size_t lcore) const {
  try {
    return std::make_unique<stage::WorkerRing>(ring::Ring(spec), &chassis_.memories[lcore]);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

std::unique_ptr<stage::WorkerRing>
RingAdmin::room_for(const ring::RingSpec& spec, std::size_t lcore, const WriterLock& lock) const {
  auto room = room_if_any(spec, lcore);
  if (!room) { // in pieces that are too small
    RingBudget::check_memory(ring::Ring(spec), chassis_.rings.read(lock), 0);
  }
  return room;
}

void RingAdmin::remember(const ring::RingSpec& spec, const WriterLock&) {
  if (journal_) {
    journal_->remember(spec);
  }
}

void RingAdmin::enter_configured(const ring::RingSpec& spec, std::size_t lcore,
                                 std::unique_ptr<stage::WorkerRing> room, const WriterLock& lock) {
  if (!room) {
    room = room_for(spec, lcore, lock);
  }
  enter(spec, lcore, std::move(*room), {.origin = Origin::configuration}, lock);
}

void RingAdmin::enter(const ring::RingSpec& spec, std::size_t lcore, stage::WorkerRing room,
                      const RingCare& care, const WriterLock& lock) {
  const ring::RingSet& rings = chassis_.rings.read(lock);
  assert(!rings.ring_with_id(spec.id));
  auto next = std::make_shared<const ring::RingSet>(rings.with(spec));
  const std::uint16_t index = rings.next_index();
  captures_.learn(index, spec, lock);
  Placement placement = chassis_.placement.read(lock);
  placement.assign(index, *next, lcore);
  auto placed = std::make_shared<const Placement>(std::move(placement));
  const auto shares = chassis_.shares(*next, *placed, lock);
  const RuleSweep sweep(chassis_, lock);
  install_rules(chassis_.ports.read(lock), *next, *placed);
  const Quiesce quiesced(chassis_.lcores);
  next = chassis_.swap_rings(std::move(next), lock, quiesced);
  room.state.heard_at_ns = lcore::Clock().now().ns;
  chassis_.follow_rings(quiesced);
  chassis_.worker_at(lcore, quiesced).adopt(index, std::move(room));
  std::vector<RingCare>& all_care = care_.change(lock, quiesced);
  all_care.resize(chassis_.rings.read(quiesced).rings().size());
  assert(all_care[index].birth == 0);
  all_care[index] = care;
  placed = chassis_.placement.swap(std::move(placed), lock, quiesced);
  chassis_.give(shares, quiesced);
  chassis_.route(index, quiesced);
}

bool RingAdmin::has(ring::RingBirth birth) {
  const WriterLock lock(chassis_.one_writer);
  return ring_born(birth, lock).has_value();
}

std::size_t RingAdmin::workers() const {
  return chassis_.placement.share()->workers();
}

std::optional<std::uint16_t> RingAdmin::ring_born(ring::RingBirth birth,
                                                  const WriterLock& lock) const {
  const std::vector<RingCare>& care = care_.read(lock);
  const auto born = std::ranges::find(care, birth, &RingCare::birth);
  return born == care.end() ? std::nullopt
                            : std::optional(static_cast<std::uint16_t>(born - care.begin()));
}

void RingAdmin::reset(std::uint32_t id, const Principal& principal) {
  const WriterLock lock(chassis_.one_writer);
  const std::uint16_t ring = ordered_ring(id, principal, lock);
  const Quiesce quiesced(chassis_.lcores);
  chassis_.worker_of(ring, quiesced).reset_ring(ring, lcore::Clock().now());
}

void RingAdmin::withdraw(std::uint32_t id, const Principal& principal) {
  const WriterLock lock(chassis_.one_writer);
  withdraw_index(ordered_ring(id, principal, lock), lock);
}

void RingAdmin::withdraw(std::uint32_t id, const WriterLock& lock) {
  withdraw_index(index_of(chassis_.rings.read(lock), id), lock);
}

void RingAdmin::withdraw_index(std::uint16_t ring, const WriterLock& lock) {
  auto next = std::make_shared<const ring::RingSet>(chassis_.rings.read(lock).without(ring));
  const auto shares = chassis_.shares(*next, chassis_.placement.read(lock), lock);
  const std::uint32_t id = chassis_.rings.read(lock).rings()[ring].spec().id;
  const RuleSweep sweep(chassis_, lock);
  drop_withdrawn(lock); // what an lcore that did not stop has left of the last one
  {
    const Quiesce quiesced(chassis_.lcores);
    next = take_out(ring, std::move(next), lcore::Clock().now(), lock, quiesced);
    chassis_.give(shares, quiesced);
  }
  chassis_.forget_operators_of(id, lock);
  drop_withdrawn(lock);
}

/// Returns the former set, for the caller to free after the stop.
std::shared_ptr<const ring::RingSet>
RingAdmin::take_out(std::uint16_t ring, std::shared_ptr<const ring::RingSet> set_without,
                    frame::Instant now, const WriterLock& lock, const Quiesce& quiesced) {
  assert(!withdrawn_.read(quiesced));
  stage::Worker& worker = chassis_.worker_of(ring, quiesced);
  withdrawn_.change(lock, quiesced).reset(new Withdrawn{worker.withdraw_ring(ring, now), worker});
  care_.change(lock, quiesced)[ring] = {};
  return chassis_.swap_rings(std::move(set_without), lock, quiesced);
}

/// In parts, with a stop for each.
void RingAdmin::drop_withdrawn(const WriterLock& lock) {
  std::unique_ptr<Withdrawn> empty; // freed after the last stop
  while (withdrawn_.read(lock)) {
    const Quiesce quiesced(chassis_.lcores);
    std::unique_ptr<Withdrawn>& ring = withdrawn_.change(lock, quiesced);
    if (!ring->worker.drop_some(ring->room, kSlotsAtOnce, lcore::Clock().now())) {
      empty = std::move(ring);
    }
  }
}

void RingAdmin::drain(std::uint32_t id, std::chrono::seconds quiet, const Principal& principal) {
  const WriterLock lock(chassis_.one_writer);
  const std::uint16_t ring = ordered_ring(id, principal, lock);
  const Quiesce quiesced(chassis_.lcores);
  care_.change(lock, quiesced)[ring].quiet_ms =
      static_cast<std::uint64_t>(std::chrono::milliseconds(quiet).count());
  chassis_.worker_of(ring, quiesced).drain_ring(ring, lcore::Clock().now());
}

void RingAdmin::drain_all() {
  const WriterLock lock(chassis_.one_writer);
  is_draining_ = true;
  const Quiesce quiesced(chassis_.lcores);
  for (const std::uint16_t ring : chassis_.rings.read(quiesced).present()) {
    chassis_.worker_of(ring, quiesced).drain_ring(ring, lcore::Clock().now());
  }
}

void RingAdmin::note_change(std::uint16_t ring, const WriterLock& lock, const Quiesce& quiesced) {
  chassis_.worker_of(ring, quiesced).change_ring(ring, lcore::Clock().now());
  RingCare& care = care_.change(lock, quiesced)[ring];
  care.origin = Origin::configuration;
  care.keeper = Keeper::members;
}

TendedRing RingAdmin::tended(std::uint16_t ring, frame::Instant now,
                             const Quiesce& quiesced) const {
  return {.spec = {},
          .care = care_.read(quiesced)[ring],
          .life = stage::life_of(chassis_.worker_of(ring, quiesced), ring,
                                 chassis_.rings.read(quiesced).rings()[ring].spec(), now)};
}

void RingAdmin::reclaim_orphan(ring::RingBirth birth) {
  std::optional<Reclaimed> reclaimed;
  {
    const WriterLock lock(chassis_.one_writer);
    const std::optional<std::uint16_t> ring = ring_born(birth, lock);
    if (ring && care_.read(lock)[*ring].origin == Origin::run_time) {
      const auto owner_gone = [](const TendedRing& orphan, std::uint64_t now_ns) {
        return Grounds{ReclaimReason::owner_gone, frame::elapsed_ns(orphan.life.heard_ns, now_ns)};
      };
      reclaimed = reclaim(*ring, owner_gone, lock);
    }
  }
  tell(reclaimed);
}

std::optional<Reclaimed> RingAdmin::reclaim_if(std::uint32_t id, const ReclaimJudge& judge) {
  std::optional<Reclaimed> reclaimed;
  {
    const WriterLock lock(chassis_.one_writer);
    reclaimed = reclaim(index_of(chassis_.rings.read(lock), id), judge, lock);
  }
  tell(reclaimed);
  return reclaimed;
}

/// Without the lock: who is told may be slow. Then the ring's frames are dropped.
void RingAdmin::tell(const std::optional<Reclaimed>& reclaimed) {
  if (!reclaimed) {
    return;
  }
  reclaim_log_.note(*reclaimed);
  const WriterLock lock(chassis_.one_writer);
  drop_withdrawn(lock);
}

/// The caller then releases the lock and calls tell().
std::optional<Reclaimed> RingAdmin::reclaim(std::uint16_t ring, const ReclaimJudge& judge,
                                            const WriterLock& lock) {
  const ring::RingSet& rings = chassis_.rings.read(lock);
  auto next = std::make_shared<const ring::RingSet>(rings.without(ring));
  ring::RingSpec spec = rings.rings()[ring].spec();
  const auto shares = chassis_.shares(*next, chassis_.placement.read(lock), lock);
  Reclaimed reclaimed{.ring = spec.id, .time_ns = unix_now_ns()};
  const RuleSweep sweep(chassis_, lock);
  drop_withdrawn(lock);
  {
    const Quiesce quiesced(chassis_.lcores);
    const frame::Instant now = lcore::Clock().now();
    TendedRing seen = tended(ring, now, quiesced);
    seen.spec = std::move(spec);
    const std::optional<Grounds> grounds = judge(seen, now.ns);
    if (!grounds) {
      return std::nullopt;
    }
    reclaimed.grounds = *grounds;
    reclaimed.fate = fate_of(seen);
    reclaimed.frames = seen.life.held;
    if (reclaimed.fate == Fate::withdrawn) {
      next = take_out(ring, std::move(next), now, lock, quiesced);
      chassis_.give(shares, quiesced);
    } else {
      chassis_.worker_of(ring, quiesced).reset_ring(ring, now);
    }
  }
  if (reclaimed.fate == Fate::withdrawn) {
    chassis_.forget_operators_of(reclaimed.ring, lock);
  }
  return reclaimed;
}

void RingAdmin::discard_all() {
  const WriterLock lock(chassis_.one_writer);
  {
    const Quiesce quiesced(chassis_.lcores);
    for (const std::uint16_t ring : chassis_.rings.read(quiesced).present()) {
      chassis_.worker_of(ring, quiesced).reset_ring(ring, lcore::Clock().now());
    }
  }
  drop_withdrawn(lock);
}

std::uint64_t RingAdmin::held_by_withdrawn(const Quiesce& quiesced) const {
  const std::unique_ptr<Withdrawn>& ring = withdrawn_.read(quiesced);
  return ring ? ring->room.state.slots.held() : 0;
}

config::Config RingAdmin::config_in_force(const WriterLock& lock) const {
  const ring::RingSet& rings = chassis_.rings.read(lock);
  config::Config all = chassis_.config.read(lock);
  all.rings.clear();
  for (const std::uint16_t ring : rings.present()) {
    if (care_.read(lock)[ring].origin == Origin::configuration) {
      all.rings.push_back(rings.rings()[ring].spec());
    }
  }
  return all;
}

} // namespace weir::control
