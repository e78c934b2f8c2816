// SPDX-License-Identifier: BSD-3-Clause
#include "control/switch.hpp"

#include "control/lcores.hpp"
#include "control/settings.hpp"
#include "lcore/clock.hpp"
#include "lcore/context_switches.hpp"
#include "lcore/mbuf_frame.hpp"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_pause.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

namespace weir::control {

using lcore::Lcore;

namespace {

constexpr std::chrono::milliseconds kStandStillTimeout{2000};
constexpr unsigned kSpinsBeforeYield = 1000;
constexpr unsigned kMempoolCache = 256;
constexpr std::chrono::milliseconds kDrainTime{20};
constexpr std::size_t kPlacesAtOnce = 256;              // connections in one stop
constexpr std::size_t kRingsAtOnce = 16;                // that are looked at in one stop
constexpr std::size_t kSlotsAtOnce = 64;                // that are emptied in one stop
constexpr std::chrono::microseconds kBetweenParts{100}; // time for lcores to work off what has come

std::uint64_t unix_now_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

int run_lcore(void* lcore) {
  static_cast<Lcore*>(lcore)->run();
  return 0;
}

} // namespace

/// All lcores are stopped while an object lives. It tells all of them before it waits for the
/// first, and the asking thread spins. So each lcore stops for as long as the slowest one's round
/// takes, and no longer.
class Switch::Quiesce {
 public:
  explicit Quiesce(Switch& owner)
      : owner_(owner), lock_(owner.one_question_), switches_(lcore::context_switches()) {
    for (const auto& lcore : owner_.lcores_) {
      lcore->stay_awake();
    }
    wait_until(&Lcore::is_awake);
    const std::uint64_t start = clock_.now().ns;
    for (const auto& lcore : owner_.lcores_) {
      lcore->quiesce();
    }
    wait_until(&Lcore::is_quiescent);
    standing_since_ = clock_.now().ns;
    owner_.stop_times_.gathering.add(standing_since_ - start);
  }

  ~Quiesce() {
    resume();
    owner_.stop_times_.standing.add(clock_.now().ns - standing_since_);
    owner_.stop_times_.kept_cpu = lcore::context_switches() == switches_;
    ++owner_.stop_times_.stops;
  }

  Quiesce(const Quiesce&) = delete;
  Quiesce& operator=(const Quiesce&) = delete;

 private:
  void wait_until(bool (Lcore::*is_there)() const) {
    const auto deadline = std::chrono::steady_clock::now() + kStandStillTimeout;
    for (const auto& lcore : owner_.lcores_) {
      for (unsigned spins = 0; !((*lcore).*is_there)(); ++spins) {
        if (spins < kSpinsBeforeYield) {
          rte_pause();
          continue;
        }
        std::this_thread::yield(); // the lcore may want this CPU
        if (std::chrono::steady_clock::now() > deadline) {
          resume();
          throw LcoreError(lcore->id(), fmt::format("lcore {} did not stand still within {} ms",
                                                    lcore->id(), kStandStillTimeout.count()));
        }
      }
    }
  }

  void resume() {
    for (const auto& lcore : owner_.lcores_) {
      lcore->resume();
    }
  }

  Switch& owner_;
  std::lock_guard<std::mutex> lock_;
  lcore::Clock clock_;
  std::uint64_t switches_;
  std::uint64_t standing_since_ = 0;
};

namespace {

std::optional<RingJournal> journal_of(const config::Config& config) {
  return config.state_directory.empty() ? std::nullopt
                                        : std::optional<RingJournal>(config.state_directory);
}

/// The configured rings, and as withdrawn ones those that the switch remembers.
ring::RingSet first_rings(const config::Config& config, const std::optional<RingJournal>& journal,
                          const wire::HashKey& hash_key) {
  ring::RingSet set(config.rings, hash_key);
  if (!journal) {
    return set;
  }
  std::uint32_t unused_id = 0;
  for (ring::RingSpec ring : journal->remembered()) {
    while (set.ring_with_id(unused_id)) {
      ++unused_id;
    }
    ring.id = unused_id;
    set = set.with(ring).without(set.next_index());
  }
  return set;
}

bool is_steered(const std::shared_ptr<Port>& port) {
  return port && port->config().rx_steering == config::RxSteering::flow;
}

/// Rings that come while the switch runs must be remembered (docs/protocol.md §2a).
void check_can_remember(const std::optional<RingJournal>& journal, const ring::RingSpec& spec) {
  if (!journal) {
    throw RingRefused(fmt::format("ring {}: this switch has no room for rings made while it runs; "
                                  "allowed: a configuration with spare: and state_directory:",
                                  spec.id));
  }
}

/// A reload may have closed one since the ring was read.
void check_ports_are_there(const ring::RingSpec& spec,
                           const std::vector<config::PortConfig>& ports) {
  for (const ring::Member& member : spec.members) {
    if (member.port && !ports.at(*member.port).is_there()) {
      throw RingRefused(fmt::format("ring {}: the port of member {} was closed just now; allowed: "
                                    "a port that there is",
                                    spec.id, wire::to_string(member.ip)));
    }
  }
}

/// nullptr when there is no memory for it now.
std::unique_ptr<stage::RingRoom> room_if_any(const ring::Ring& ring, EalMemory& memory) {
  try {
    return std::make_unique<stage::RingRoom>(ring, &memory);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

NumaNodes numa_nodes(const config::Config& config) {
  NumaNodes nodes;
  for (unsigned lcore = 1; lcore < rte_lcore_count(); ++lcore) { // 0 is control
    nodes.lcores.push_back(static_cast<int>(rte_lcore_to_socket_id(lcore)));
  }
  for (const config::PortConfig& port : config.ports) {
    nodes.ports.push_back(numa_node_of(port));
  }
  return nodes;
}

std::vector<EalMemory> memories_of(const Placement& placement) {
  std::vector<EalMemory> memories;
  for (const Placement::DataLcore& lcore : placement.lcores) {
    memories.emplace_back(lcore.node);
  }
  return memories;
}

/// "rings[8], l2.aging_s"
std::string places_not_in_force(const std::vector<config::Change>& changes) {
  std::vector<std::string_view> places;
  for (const config::Change& change : changes) {
    places.push_back(change.place);
  }
  return fmt::format("{}", fmt::join(places, ", "));
}

} // namespace

Switch::Switch(const config::Config& config)
    : config_(config), journal_(journal_of(config)),
      rings_(first_rings(config, journal_, hash_key_)),
      placement_(with_queues(config, place(config, *rings_, numa_nodes(config)))),
      plan_(plan_memory(config, *rings_, placement_)), ring_budget_(config.spare, *rings_, plan_),
      tenants_(config.tenants, plan_.mbuf_bytes, *rings_), port_budget_(config),
      memories_(memories_of(placement_)),
      stations_(config.l2.entries, milliseconds(config.l2.aging_s), hash_key_),
      bridge_(stations_, static_cast<std::uint16_t>(config.ports.size())), in_force_(config) {
  check_memory();
  care_.reserve(rings_->rings().size() + config.spare.rings); // it grows while lcores stand still
  care_.resize(rings_->rings().size());
  Ports ports;
  for (const config::PortConfig& port : config_.ports) {
    ports.push_back(std::make_shared<Port>(port));
  }
  cleared_.resize(ports.size());
  ports_.swap(std::make_shared<const Ports>(std::move(ports)));
  make_pool();
  make_lcores();
}

/// On the ports' NUMA node if EAL has memory there.
void Switch::make_pool() {
  const auto pool_on = [this](int node) {
    return rte_pktmbuf_pool_create("weir_frames", plan_.mbufs, kMempoolCache,
                                   lcore::kFrameBytesInMbuf, plan_.data_room, node);
  };
  pool_ = pool_on(node_of_frames(port_nodes()));
  pool_ = pool_ != nullptr ? pool_ : pool_on(SOCKET_ID_ANY);
  if (pool_ == nullptr) {
    throw MemoryError(fmt::format("no memory for the frame pool ({}): {}", rte_strerror(rte_errno),
                                  plan_.explanation));
  }
}

/// By place.
std::vector<PortNode> Switch::port_nodes() const {
  std::vector<PortNode> nodes;
  for (const auto& port : *ports_) {
    nodes.push_back(port ? PortNode{port->name(), port->numa_node()} : PortNode{});
  }
  return nodes;
}

std::vector<std::string> Switch::numa_warnings() const {
  const std::vector<PortNode> ports = port_nodes();
  std::vector<std::string> warnings = crossings(ports, placement_, pool_->socket_id);
  if (const int wished = node_of_frames(ports); pool_->socket_id != wished) {
    warnings.push_back(misplaced("mbufs", wished));
  }
  for (std::size_t i = 0; i < memories_.size(); ++i) {
    if (memories_[i].has_given_from_elsewhere()) {
      warnings.push_back(misplaced(fmt::format("slots and results of lcore {}", lcores_[i]->id()),
                                   memories_[i].node()));
    }
  }
  return warnings;
}

Switch::~Switch() {
  try {
    if (is_running_) {
      stop();
    }
  } catch (const LcoreError& error) { // the lcore still uses what would be freed
    fmt::print(stderr, "weir: {}\n", error.what());
    std::abort();
  }
  capture_.reset();
  lcores_.clear();
  ports_.swap(std::make_shared<const Ports>()); // before the pool: their queues hold its mbufs
  rte_mempool_free(pool_);
}

void Switch::check_memory() const {
  const std::size_t have = available_memory();
  if (plan_.total() > have) {
    throw MemoryError(fmt::format(
        "the configuration needs {:.0f} MiB, EAL has {:.0f} MiB: {}. Give EAL more (-m or "
        "--socket-mem under "
        "eal.options, or hugepages), or make window, max_message_bytes or descriptors smaller",
        static_cast<double>(plan_.total()) / kMiB, static_cast<double>(have) / kMiB,
        plan_.explanation));
  }
}

void Switch::make_lcores() {
  stage::Worker::Settings settings;
  settings.classifier =
      classifier_settings(config_, conn::SessionSource::random(conn::HashKey::random()), hash_key_);
  settings.classifier.foreign_sessions = &foreign_sessions_;
  settings.classifier.claims = &claims_;
  shared_.emplace(Lcore::Shared{rings_, bridge_, frame_limits(config_),
                                conn::magic_rule_settings(settings.classifier), pool_,
                                outer_tags(config_)});
  settings.level = op::best_cpu_level();
  std::vector<lcore::TxQueues> queues;
  for (const auto& port : *ports_) {
    queues.push_back(port->tx_queues());
    queues.back().ring_backlog =
        ring_backlog_of(config_, static_cast<std::uint16_t>(queues.size() - 1));
  }
  lcores_ = control::make_lcores(placement_, *shared_, settings, queues, memories_);
  give(tenants_.shares(*rings_, placement_));
}

/// By lcore. Only while all lcores are stopped.
void Switch::give(const std::vector<stage::TenantShares>& shares) {
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (stage::Worker* worker = lcores_[i]->worker(); worker != nullptr) {
      worker->queue().set_shares(shares[i], lcore::Clock().now());
    }
  }
}

/// Gives each steered port what it should have for these rings.
void Switch::steer(const ring::RingSet& rings, const Placement& placement,
                   void (Port::*give)(const SteeringPlan&)) const {
  for (std::uint16_t place = 0; place < ports_->size(); ++place) {
    if (const std::shared_ptr<Port>& port = ports_->at(place); is_steered(port)) {
      ((*port).*give)(plan_steering(rings, placement, place));
    }
  }
}

/// Before these rings are in force, so that none of their packets comes by the other way.
void Switch::install_rules(const ring::RingSet& rings, const Placement& placement) {
  steer(rings, placement, &Port::install_rules);
}

/// Where rings come into force or go. At its end it removes the rules that no ring in force needs,
/// also those of a ring that did not come into force in the end.
class Switch::RuleSweep {
 public:
  explicit RuleSweep(const Switch& owner) : owner_(owner) {}

  ~RuleSweep() {
    try {
      owner_.steer(*owner_.rings_, owner_.placement_, &Port::keep_only_rules);
    } catch (const std::bad_alloc&) { // the next one removes them
    }
  }

  RuleSweep(const RuleSweep&) = delete;
  RuleSweep& operator=(const RuleSweep&) = delete;

 private:
  const Switch& owner_;
};

void Switch::start() {
  for (const auto& port : *ports_) {
    port->start(pool_);
  }
  install_rules(*rings_, placement_);
  for (std::size_t i = 0; i < lcores_.size(); ++i) {
    rte_eal_remote_launch(run_lcore, lcores_[i].get(), static_cast<unsigned>(i + 1));
  }
  for (const auto& lcore : lcores_) {
    lcore->wait_until_running();
  }
  is_running_ = true;
}

void Switch::stop() {
  {
    const Quiesce quiesced(*this);
    for (const auto& lcore : lcores_) {
      lcore->stop_receiving();
    }
  }
  std::this_thread::sleep_for(
      kDrainTime); // until the stages are empty and the ports have taken what they can
  for (const auto& lcore : lcores_) {
    lcore->stop();
  }
  for (const auto& lcore : lcores_) {
    lcore->wait_until_stopped();
  }
  rte_eal_mp_wait_lcore();
  is_running_ = false;
  discard_all();
  stop_capture(); // what was discarded is in it
  for (const auto& port : *ports_) {
    if (port) {
      port->stop();
    }
  }
}

/// A capture that ends meanwhile waits: here this thread does what lcores do.
void Switch::discard_all() {
  const std::lock_guard lock(one_question_);
  for (const std::uint16_t ring : rings_->present()) {
    worker_of(ring).worker()->reset_ring(ring, lcore::Clock().now());
  }
  while (withdrawn_ &&
         withdrawn_->worker.drop_some(withdrawn_->room, kSlotsAtOnce, lcore::Clock().now())) {
  }
  for (const auto& lcore : lcores_) {
    lcore->discard_queued();
  }
}

void Switch::close_ports() {
  for (const auto& port : *ports_) {
    if (port) {
      port->close();
    }
  }
}

std::shared_ptr<const config::Config> Switch::config() const {
  return in_force_.share();
}

std::vector<std::shared_ptr<const Port>> Switch::ports() const {
  const auto ports = ports_.share();
  return {ports->begin(), ports->end()};
}

std::shared_ptr<const ring::RingSet> Switch::ring_set() const {
  return rings_.share();
}

/// For who holds one of the two locks.
std::uint16_t Switch::index_of(std::uint32_t id) const {
  const auto ring = rings_->ring_with_id(id);
  if (!ring) {
    throw NoSuchRing(fmt::format("ring: found {}; allowed: {}", id, ids_of(*rings_)));
  }
  return *ring;
}

/// The ring that `principal` gives an order to. The lock is held until the order's end.
std::uint16_t Switch::ordered_ring(std::uint32_t id, const Principal& principal,
                                   const WriterLock& /*lock*/) const {
  const std::uint16_t ring = index_of(id);
  principal.check_may_order(rings_->rings()[ring].spec());
  return ring;
}

std::uint32_t Switch::most_claims() const {
  return conn::QueuePairClaims::most_of(*rings_) +
         conn::QueuePairClaims::kPerChild * config_.spare.members;
}

Lcore& Switch::worker_of(std::uint16_t ring) {
  return *lcores_[placement_.worker_of_ring[ring]];
}

frame::PortCounters Switch::all_port_counters(std::uint16_t port) const {
  frame::PortCounters sum;
  for (const auto& lcore : lcores_) {
    sum += lcore->port_counters(port);
  }
  return sum;
}

frame::PortCounters Switch::port_counters(std::uint16_t port) const {
  const std::lock_guard lock(one_question_);
  frame::PortCounters counters = all_port_counters(port);
  counters -= cleared_[port];
  return counters;
}

void Switch::clear_port_counters(std::uint16_t port) {
  {
    const std::lock_guard lock(one_question_);
    cleared_[port] = all_port_counters(port);
  }
  if (const std::shared_ptr<Port> open = ports_->at(port); open) {
    open->clear_statistics();
  }
}

StopTimes Switch::stop_times() const {
  const std::lock_guard lock(one_question_);
  return stop_times_;
}

stage::Accounting Switch::accounting() {
  const Quiesce quiesced(*this);
  stage::Accounting accounting;
  for (const auto& lcore : lcores_) {
    accounting.frames += lcore->counters();
    accounting.queued += lcore->queued();
    accounting.held += lcore->worker() != nullptr ? lcore->worker()->held() : 0;
  }
  accounting.held += withdrawn_ ? withdrawn_->room.state.slots.held() : 0;
  return accounting;
}

RingsSeen Switch::ring_snapshots() {
  RingsSeen seen;
  const Quiesce quiesced(*this);
  seen.set = rings_.share();
  for (const std::uint16_t ring : rings_->present()) {
    seen.rings.push_back(snapshot_of(ring));
  }
  return seen;
}

/// For who makes the lcores stand still.
stage::RingSnapshot Switch::snapshot_of(std::uint16_t ring) {
  return stage::snapshot_ring(*worker_of(ring).worker(), ring, lcore::Clock().now());
}

/// Visits the set's rings, some in each stop. False if there is another set by then.
template <typename Visit>
bool Switch::visit_in_parts(const std::shared_ptr<const ring::RingSet>& set, Visit&& visit) {
  const std::vector<std::uint16_t> rings = set->present();
  for (std::size_t first = 0; first < rings.size(); first += kRingsAtOnce) {
    if (first != 0) {
      std::this_thread::sleep_for(kBetweenParts);
    }
    const Quiesce quiesced(*this);
    if (rings_.share() != set) {
      return false;
    }
    for (std::size_t i = first; i < std::min(first + kRingsAtOnce, rings.size()); ++i) {
      visit(rings[i]);
    }
  }
  return true;
}

RingsSeen Switch::ring_snapshots_in_parts() {
  RingsSeen seen;
  do {
    seen = {ring_set(), {}};
  } while (!visit_in_parts(seen.set,
                           [&](std::uint16_t ring) { seen.rings.push_back(snapshot_of(ring)); }));
  return seen;
}

RingsSeen Switch::ring_snapshot(std::uint32_t id) {
  const Quiesce quiesced(*this);
  const std::uint16_t ring = index_of(id);
  return {rings_.share(), {snapshot_of(ring)}};
}

/// Sorts after the stop, while the ring cannot be withdrawn.
StuckRing Switch::stuck_slots(std::uint32_t id, std::size_t limit) {
  const std::lock_guard lock(one_writer_);
  const std::uint16_t ring = index_of(id);
  const stage::Worker& worker = *worker_of(ring).worker();
  StuckRing answer{.spec = rings_->rings()[ring].spec(), .stuck = {}};
  stage::StuckSnapshot& stuck = answer.stuck;
  std::vector<slot::WaitingSlot> waiting;
  {
    const Quiesce quiesced(*this);
    stuck.now = lcore::Clock().now();
    waiting = worker.slots_of(ring).waiting();
    stuck.waited_for = stage::snapshot_senders(worker, ring);
  }
  stuck.slots = worker.slots_of(ring).longest_of(std::move(waiting), limit, stuck.now.ns);
  stage::keep_waited_for(stuck.waited_for, stuck.slots);
  return answer;
}

namespace {

std::size_t places_of(Lcore& lcore) {
  const stage::Worker* worker = lcore.worker();
  return worker != nullptr ? worker->classifier().connections().places() : 0;
}

} // namespace

std::vector<stage::ConnectionSnapshot> Switch::connections() {
  std::vector<stage::ConnectionSnapshot> all;
  // Allocated and touched before the stop.
  std::vector<stage::ConnectionSnapshot> part(kPlacesAtOnce);
  for (const auto& lcore : lcores_) {
    const std::size_t places = places_of(*lcore);
    for (std::size_t first = 0; first < places; first += kPlacesAtOnce) {
      part.clear();
      {
        const Quiesce quiesced(*this);
        snapshot_connections(*lcore->worker(), *rings_, {first, kPlacesAtOnce},
                             lcore::Clock().now(), part);
      }
      all.insert(all.end(), part.begin(), part.end());
      std::this_thread::sleep_for(kBetweenParts);
    }
  }
  return all;
}

void Switch::reset_ring(std::uint32_t id, const Principal& principal) {
  const WriterLock lock(one_writer_);
  const std::uint16_t ring = ordered_ring(id, principal, lock);
  const Quiesce quiesced(*this);
  worker_of(ring).worker()->reset_ring(ring, lcore::Clock().now());
}

ring::RingBirth Switch::add_ring(const ring::RingSpec& spec) {
  return add(spec, Keeper::members);
}

ring::RingBirth Switch::hold_ring(const ring::RingSpec& spec) {
  return add(spec, Keeper::owner);
}

ring::RingBirth Switch::add(const ring::RingSpec& spec, Keeper keeper) {
  const WriterLock lock(one_writer_);
  check_may_add(spec);
  check_id(spec);
  check_ports_are_there(spec, config()->ports);
  const std::size_t lcore = forecast().add(spec);
  auto room = room_for(ring::Ring(spec), lcore);
  journal_->remember(spec);
  enter(spec, lcore, std::move(*room),
        {.origin = Origin::run_time, .birth = ++last_birth_, .keeper = keeper});
  return last_birth_;
}

void Switch::check_may_add(const ring::RingSpec& spec) const {
  check_can_remember(journal_, spec);
  if (is_draining_) {
    throw RingRefused(
        fmt::format("ring {}: this switch is about to stop; allowed: no new ring", spec.id));
  }
}

void Switch::check_id(const ring::RingSpec& spec) const {
  if (rings_->ring_with_id(spec.id)) {
    throw RingExists(fmt::format("id: found {}, which a ring has; allowed: any but {}", spec.id,
                                 ids_of(*rings_)));
  }
}

std::chrono::seconds Switch::drain_time() {
  return std::chrono::seconds(config()->drain_s);
}

/// What other rings would come to.
RingForecast Switch::forecast() const {
  RingForecast::Free free{.places = {}, .memory = available_memory()};
  for (const auto& lcore : lcores_) {
    const stage::Worker* worker = lcore->worker();
    free.places.push_back(worker != nullptr ? worker->classifier().spare_children() : 0);
  }
  return {*rings_, placement_, {ring_budget_, tenants_}, std::move(free)};
}

void Switch::enter(const ring::RingSpec& spec, std::size_t lcore, stage::RingRoom room,
                   const RingCare& care) {
  auto next = std::make_shared<const ring::RingSet>(rings_->with(spec));
  const std::uint16_t index = rings_->next_index();
  const std::uint16_t group = next->group_of_ring(index);
  tell_capture(index, spec);
  Placement placement = placement_;
  placement.assign(index, group, lcore);
  const auto shares = tenants_.shares(*next, placement);
  const RuleSweep sweep(*this);
  install_rules(*next, placement);
  const Quiesce quiesced(*this);
  next = rings_.swap(std::move(next));
  room.state.heard_at_ns = lcore::Clock().now().ns;
  lcores_[lcore]->worker()->adopt(index, std::move(room));
  care_.resize(rings_->rings().size());
  care_[index] = care;
  std::swap(placement_, placement);
  give(shares);
  for (const auto& other : lcores_) {
    other->route_group(group, *lcores_[lcore]);
  }
}

void Switch::tell_capture(std::uint16_t ring, const ring::RingSpec& spec) {
  const std::lock_guard lock(one_capture_);
  if (capture_) {
    capture_->learn(ring, spec);
  }
}

std::unique_ptr<stage::RingRoom> Switch::room_for(const ring::Ring& ring, std::size_t lcore) {
  auto room = room_if_any(ring, memories_[lcore]);
  if (!room) { // in pieces that are too small
    RingBudget::check_memory(ring, *rings_, 0);
  }
  return room;
}

void Switch::withdraw_ring(std::uint32_t id, const Principal& principal) {
  const WriterLock lock(one_writer_);
  withdraw(ordered_ring(id, principal, lock));
}

void Switch::reclaim_orphan(ring::RingBirth birth) {
  std::optional<Reclaimed> reclaimed;
  {
    const std::lock_guard lock(one_writer_);
    const std::optional<std::uint16_t> ring = ring_born(birth);
    if (ring && care_[*ring].origin == Origin::run_time) {
      reclaimed = reclaim(*ring, [](const TendedRing& orphan, std::uint64_t now_ns) {
        return Grounds{ReclaimReason::owner_gone, frame::elapsed_ns(orphan.life.heard_ns, now_ns)};
      });
    }
  }
  tell(reclaimed);
}

bool Switch::has_ring_born(ring::RingBirth birth) {
  const std::lock_guard lock(one_writer_);
  return ring_born(birth).has_value();
}

std::optional<std::uint16_t> Switch::ring_born(ring::RingBirth birth) const {
  const auto born = std::ranges::find(care_, birth, &RingCare::birth);
  return born == care_.end() ? std::nullopt
                             : std::optional(static_cast<std::uint16_t>(born - care_.begin()));
}

/// For a caller that has locked one_writer_.
void Switch::withdraw(std::uint16_t ring) {
  auto next = std::make_shared<const ring::RingSet>(rings_->without(ring));
  const auto shares = tenants_.shares(*next, placement_);
  const RuleSweep sweep(*this);
  drop_withdrawn(); // what an lcore that did not stop has left of the last one
  {
    const Quiesce quiesced(*this);
    take_out(ring, next, lcore::Clock().now());
    give(shares);
  }
  drop_withdrawn();
}

/// While all lcores stand still. Leaves the former set, for the caller to free afterwards.
void Switch::take_out(std::uint16_t ring, std::shared_ptr<const ring::RingSet>& set_without,
                      frame::Instant now) {
  stage::Worker& worker = *worker_of(ring).worker();
  withdrawn_.reset(new Withdrawn{worker.withdraw_ring(ring, now), worker});
  care_[ring] = {};
  set_without = rings_.swap(std::move(set_without));
}

void Switch::drain_ring(std::uint32_t id, std::chrono::seconds quiet, const Principal& principal) {
  const WriterLock lock(one_writer_);
  const std::uint16_t ring = ordered_ring(id, principal, lock);
  const Quiesce quiesced(*this);
  care_[ring].quiet_ms = static_cast<std::uint64_t>(std::chrono::milliseconds(quiet).count());
  worker_of(ring).worker()->drain_ring(ring, lcore::Clock().now());
}

void Switch::drain_all() {
  const std::lock_guard lock(one_writer_);
  is_draining_ = true;
  const Quiesce quiesced(*this);
  for (const std::uint16_t ring : rings_->present()) {
    worker_of(ring).worker()->drain_ring(ring, lcore::Clock().now());
  }
}

/// While all lcores stand still. Without the specification, which takes time to copy.
TendedRing Switch::tended_ring(std::uint16_t ring, frame::Instant now) {
  return {.spec = {},
          .care = care_[ring],
          .life =
              stage::life_of(*worker_of(ring).worker(), ring, rings_->rings()[ring].spec(), now)};
}

TendedRings Switch::tended_rings() {
  TendedRings seen;
  std::shared_ptr<const ring::RingSet> set;
  do {
    set = ring_set();
    seen = {.now_ns = lcore::Clock().now().ns, .rings = {}};
  } while (!visit_in_parts(set, [&](std::uint16_t ring) {
    seen.rings.push_back(tended_ring(ring, lcore::Clock().now()));
  }));
  const std::vector<std::uint16_t> indices = set->present();
  for (std::size_t i = 0; i < indices.size(); ++i) {
    seen.rings[i].spec = set->rings()[indices[i]].spec();
  }
  return seen;
}

std::optional<Reclaimed> Switch::reclaim_if(std::uint32_t id, const ReclaimJudge& judge) {
  std::optional<Reclaimed> reclaimed;
  {
    const std::lock_guard lock(one_writer_);
    reclaimed = reclaim(index_of(id), judge);
  }
  tell(reclaimed);
  return reclaimed;
}

/// Without one_writer_: who is told may be slow. Then the ring's frames are dropped.
void Switch::tell(const std::optional<Reclaimed>& reclaimed) {
  if (!reclaimed) {
    return;
  }
  reclaim_log_.note(*reclaimed);
  const std::lock_guard lock(one_writer_);
  drop_withdrawn();
}

/// For a caller that has locked one_writer_ and then calls tell().
std::optional<Reclaimed> Switch::reclaim(std::uint16_t ring, const ReclaimJudge& judge) {
  auto next = std::make_shared<const ring::RingSet>(rings_->without(ring));
  ring::RingSpec spec = rings_->rings()[ring].spec();
  const auto shares = tenants_.shares(*next, placement_);
  Reclaimed reclaimed{.ring = spec.id, .time_ns = unix_now_ns()};
  const RuleSweep sweep(*this);
  drop_withdrawn();
  {
    const Quiesce quiesced(*this);
    const frame::Instant now = lcore::Clock().now();
    TendedRing tended = tended_ring(ring, now);
    tended.spec = std::move(spec);
    const std::optional<Grounds> grounds = judge(tended, now.ns);
    if (!grounds) {
      return std::nullopt;
    }
    reclaimed.grounds = *grounds;
    reclaimed.fate = fate_of(tended);
    reclaimed.frames = tended.life.held;
    if (reclaimed.fate == Fate::withdrawn) {
      take_out(ring, next, now);
      give(shares);
    } else {
      worker_of(ring).worker()->reset_ring(ring, now);
    }
  }
  return reclaimed;
}

/// In parts, with a stop for each.
void Switch::drop_withdrawn() {
  for (bool has_more = withdrawn_ != nullptr; has_more;) {
    const Quiesce quiesced(*this);
    has_more = withdrawn_->worker.drop_some(withdrawn_->room, kSlotsAtOnce, lcore::Clock().now());
  }
  std::unique_ptr<Withdrawn> empty; // freed without the lock
  const std::lock_guard lock(one_question_);
  empty = std::move(withdrawn_);
}

std::vector<config::Change> Switch::rehearse_reload() {
  const std::lock_guard one(one_reload_);
  const WantedConfig wanted = read_wanted(*config(), port_budget_);
  const std::lock_guard lock(one_writer_);
  return planned_reload(wanted).plan.changes;
}

std::vector<config::Change> Switch::reload() {
  const std::lock_guard one(one_reload_);
  const WantedConfig wanted = read_wanted(*config(), port_budget_);
  const std::lock_guard lock(one_writer_);
  Reload reload = planned_reload(wanted);
  NewPorts ports(wanted.ports, pool_);
  remember(reload.plan);
  try {
    carry_out(reload, wanted, ports);
  } catch (const std::exception& error) {
    throw ReloadUnfinished(
        fmt::format("{}; not in force: {}", error.what(),
                    places_not_in_force(config::difference(in_force(), wanted.config))));
  }
  return std::move(reload.plan.changes);
}

/// The configuration as it is in force, without what waits for a restart and without rings that
/// were made while the switch runs.
config::Config Switch::in_force() const {
  config::Config all = *config();
  all.rings.clear();
  for (const std::uint16_t ring : rings_->present()) {
    if (care_[ring].origin == Origin::configuration) {
      all.rings.push_back(rings_->rings()[ring].spec());
    }
  }
  return all;
}

Switch::Reload Switch::planned_reload(const WantedConfig& wanted) {
  Reload reload{.plan = plan_reload(in_force(), wanted, *rings_), .lcores = {}};
  RingForecast rings = forecast();
  for (const ring::RingSpec& spec : reload.plan.withdrawn) {
    rings.withdraw(index_of(spec.id));
  }
  rings.change(reload.plan.changed);
  for (const ring::RingSpec& spec : reload.plan.added) {
    check_may_add(spec);
    reload.lcores.push_back(rings.add(spec));
  }
  check_opened(wanted.ports, reload.plan);
  check_closed(wanted.ports, reload.plan);
  return reload;
}

/// The file's rings suit the ports already.
void Switch::check_opened(const PortPlan& ports, const ReloadPlan& rings) const {
  const auto capture = this->capture();
  for (const std::uint16_t place : ports.opened) {
    const config::PortConfig& port = ports.places[place];
    if (capture && capture->state == capture::State::running) {
      throw PortError(fmt::format("port {}: {} is being written with the ports that there are; "
                                  "allowed: `capture stop` before it",
                                  port.name, capture->file));
    }
    for (const ring::RingSpec& ring : rings.staying(*rings_)) {
      check_mtu(port, ring);
    }
  }
}

void Switch::check_closed(const PortPlan& ports, const ReloadPlan& rings) {
  if (ports.closed.empty()) {
    return;
  }
  const std::vector<ring::RingSpec> staying = rings.staying(*rings_);
  const auto running = config();
  const Quiesce quiesced(*this);
  for (const std::uint16_t place : ports.closed) {
    for (const ring::RingSpec& ring : staying) {
      if (speaks_by(index_of(ring.id), ring, place)) {
        throw PortError(fmt::format("port {}: a member of ring {} is behind it; allowed: `reset "
                                    "ring {}` when its job has ended, or `withdraw ring {}`",
                                    running->ports[place].name, ring.id, ring.id, ring.id));
      }
    }
  }
}

/// While all lcores stand still. A member that the configuration moves to another port does so no
/// longer.
bool Switch::speaks_by(std::uint16_t ring, const ring::RingSpec& as_it_will_be,
                       std::uint16_t port) {
  const conn::Classifier& classifier = worker_of(ring).worker()->classifier();
  for (std::uint16_t child = 0; child < as_it_will_be.members.size(); ++child) {
    if (as_it_will_be.members[child].port.value_or(port) == port &&
        classifier.speaks_by({ring, child}, port)) {
      return true;
    }
  }
  return false;
}

/// The file of the next start may have none of these rings.
void Switch::remember(const ReloadPlan& plan) {
  for (const auto* rings : {&plan.withdrawn, &plan.added}) {
    for (const ring::RingSpec& spec : *rings) {
      if (journal_) {
        journal_->remember(spec);
      }
    }
  }
}

/// Ports are open, and rooms are made where memory suffices, before the first ring goes: whatever
/// has failed by then has changed nothing.
void Switch::carry_out(const Reload& reload, const WantedConfig& wanted, NewPorts& ports) {
  const ReloadPlan& plan = reload.plan;
  std::vector<std::unique_ptr<stage::RingRoom>> rooms;
  for (std::size_t i = 0; i < plan.added.size(); ++i) {
    rooms.push_back(room_if_any(ring::Ring(plan.added[i]), memories_[reload.lcores[i]]));
  }
  for (const std::uint16_t place : wanted.ports.opened) {
    open_port(place, ports);
  }
  for (const ring::RingSpec& spec : plan.withdrawn) {
    withdraw(index_of(spec.id));
  }
  if (plan.changes_in_place()) {
    change_in_place(plan, wanted.config);
  }
  for (std::size_t i = 0; i < plan.added.size(); ++i) {
    const ring::RingSpec& spec = plan.added[i];
    auto room = rooms[i] ? std::move(rooms[i]) : room_for(ring::Ring(spec), reload.lcores[i]);
    enter(spec, reload.lcores[i], std::move(*room), {.origin = Origin::configuration});
  }
  for (const std::uint16_t place : wanted.ports.closed) {
    close_port(place);
  }
}

void Switch::change_in_place(const ReloadPlan& plan, const config::Config& wanted) {
  auto next = std::make_shared<const ring::RingSet>(rings_->with_changed(plan.changed));
  auto changed =
      std::make_shared<const config::Config>(config::changed_in_place(*config(), wanted));
  const RuleSweep sweep(*this);
  install_rules(*next, placement_);
  {
    const Quiesce quiesced(*this);
    changed = in_force_.swap(std::move(changed));
    next = rings_.swap(std::move(next));
    for (const ring::RingSpec& spec : plan.changed) {
      const std::uint16_t ring = index_of(spec.id);
      worker_of(ring).worker()->change_ring(ring, lcore::Clock().now());
      care_[ring].origin = Origin::configuration; // whoever has made it
      care_[ring].keeper = Keeper::members;
    }
    for (const auto& lcore : lcores_) {
      lcore->set_aging(milliseconds(wanted.connections.aging_s));
    }
  }
  stations_.set_aging(milliseconds(wanted.l2.aging_s));
}

/// Takes the next of the new ports.
void Switch::open_port(std::uint16_t place, NewPorts& ports) {
  const std::shared_ptr<Port> port = ports.next();
  const config::PortConfig& settings = port->config();
  config::Config changed = *config();
  changed.ports.resize(std::max<std::size_t>(changed.ports.size(), place + 1u));
  changed.ports[place] = settings;
  auto next_ports = std::make_shared<Ports>(*ports_);
  next_ports->resize(changed.ports.size());
  next_ports->at(place) = port;
  lcore::TxQueues queues = port->tx_queues();
  queues.ring_backlog = ring_backlog_of(in_force(), place);
  auto tx_port = std::make_unique<lcore::TxPort>(queues);
  auto tags = outer_tags(changed);
  Placement placement = placement_;
  placement.open_port(place, settings.rx_queues, port->numa_node());
  auto next = std::make_shared<const config::Config>(std::move(changed));
  std::shared_ptr<const Ports> former_ports;
  port->install_rules(plan_steering(*rings_, placement, place));

  const Quiesce quiesced(*this);
  next = in_force_.swap(std::move(next));
  std::swap(placement_, placement);
  shared_->outer_tags.swap(tags);
  give_device(place, queues.device, std::move(tx_port));
  for (const auto& lcore : lcores_) {
    lcore->set_frame_limit(place, stage::max_frame_bytes(settings.mtu));
  }
  bridge_.add_port(place);
  former_ports = ports_.swap(std::move(next_ports));
  ports.take_next();
  cleared_.resize(ports_->size());
  cleared_[place] = all_port_counters(place);
}

/// To the lcores that the placement says. While all lcores stand still.
void Switch::give_device(std::uint16_t place, std::uint16_t device,
                         std::unique_ptr<lcore::TxPort> queues) {
  Lcore& transmitter = *lcores_[placement_.transmitter_of_port[place]];
  transmitter.add_tx_port(place, std::move(queues));
  for (std::size_t i = 0; i < lcores_.size(); ++i) {
    lcores_[i]->route_port(place, transmitter);
    for (const Placement::Queue& queue : placement_.lcores[i].receives) {
      if (queue.port == place) {
        lcores_[i]->add_rx_queue({place, device, queue.queue});
      }
    }
  }
}

/// First receiving ends; then, when what has come by the port is worked off, it takes no more.
void Switch::take_device(std::uint16_t place) {
  {
    const Quiesce quiesced(*this);
    for (const auto& lcore : lcores_) {
      lcore->remove_rx_queues(place);
    }
  }
  std::this_thread::sleep_for(kDrainTime);
  const Quiesce quiesced(*this);
  for (const auto& lcore : lcores_) {
    lcore->close_tx_port(place);
  }
}

void Switch::replace_ports() {
  const std::lock_guard lock(one_writer_);
  for (std::uint16_t place = 0; place < ports_->size(); ++place) {
    const std::shared_ptr<Port> port = ports_->at(place);
    if (!port || !port->can_be_replaced()) {
      continue;
    }
    try {
      replace_port(place);
    } catch (const PortError& error) {
      port->tell_why_gone(error.what());
    }
  }
}

/// Its device's name is free only when the former device is detached. If the new one cannot be
/// opened, the closed port keeps the place.
void Switch::replace_port(std::uint16_t place) {
  const std::shared_ptr<Port> former = ports_->at(place);
  take_device(place);
  former->detach();
  const auto port = std::make_shared<Port>(former->config());
  port->start(pool_);
  lcore::TxQueues queues = port->tx_queues();
  queues.ring_backlog = ring_backlog_of(in_force(), place);
  auto tx_port = std::make_unique<lcore::TxPort>(queues);
  auto next_ports = std::make_shared<Ports>(*ports_);
  next_ports->at(place) = port;
  std::shared_ptr<const Ports> former_ports;

  const Quiesce quiesced(*this);
  give_device(place, queues.device, std::move(tx_port));
  former_ports = ports_.swap(std::move(next_ports));
}

/// As take_device(), and the rings forget the port.
void Switch::close_port(std::uint16_t place) {
  {
    const Quiesce quiesced(*this);
    bridge_.remove_port(place);
    for (const auto& lcore : lcores_) {
      lcore->remove_rx_queues(place);
    }
  }
  std::this_thread::sleep_for(kDrainTime);
  config::Config changed = *config();
  changed.ports[place] = {};
  auto next = std::make_shared<const config::Config>(std::move(changed));
  auto others = std::make_shared<Ports>(*ports_);
  const std::shared_ptr<Port> port = std::exchange(others->at(place), nullptr);
  std::shared_ptr<const Ports> former_ports;
  {
    const Quiesce quiesced(*this);
    for (const std::uint16_t ring : rings_->present()) {
      if (speaks_by(ring, rings_->rings()[ring].spec(), place)) { // a hello that came just now
        worker_of(ring).worker()->reset_ring(ring, lcore::Clock().now());
      }
    }
    for (const auto& lcore : lcores_) {
      lcore->close_tx_port(place);
      lcore->set_frame_limit(place, std::nullopt);
    }
    placement_.close_port(place);
    next = in_force_.swap(std::move(next));
    former_ports = ports_.swap(std::move(others));
  }
  stations_.forget_port(place);
  port->detach();
}

void Switch::trace_on() {
  const std::lock_guard lock(one_reader_);
  std::vector<frame::Trace> traces = empty_traces();
  traced_.assign(lcores_.size(), {});
  const Quiesce quiesced(*this);
  for (std::size_t i = 0; i < lcores_.size(); ++i) {
    lcores_[i]->trace().switch_on_with(traces[i]);
  }
}

std::vector<frame::Trace> Switch::empty_traces() const {
  std::vector<frame::Trace> traces(lcores_.size());
  for (frame::Trace& trace : traces) {
    trace.switch_on();
  }
  return traces;
}

void Switch::trace_off() {
  const Quiesce quiesced(*this);
  for (const auto& lcore : lcores_) {
    lcore->trace().switch_off();
  }
}

std::vector<frame::TraceRecord> Switch::trace() {
  const std::lock_guard lock(one_reader_);
  std::vector<frame::Trace> traces = empty_traces();
  {
    const Quiesce quiesced(*this);
    for (std::size_t i = 0; i < lcores_.size(); ++i) {
      lcores_[i]->trace().hand_over_to(traces[i]);
    }
  }
  std::vector<frame::TraceRecord> all;
  traced_.resize(lcores_.size());
  for (std::size_t i = 0; i < lcores_.size(); ++i) {
    const std::vector<frame::TraceRecord> newest = traces[i].snapshot();
    std::deque<frame::TraceRecord>& part = traced_[i];
    part.insert(part.end(), newest.begin(), newest.end());
    while (part.size() > frame::Trace::kRecords) {
      part.pop_front();
    }
    all.insert(all.end(), part.begin(), part.end());
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.now_ns < b.now_ns; });
  return all;
}

void Switch::start_capture(CaptureOrder order) {
  const std::scoped_lock locks(one_writer_, one_capture_);
  if (capture_ && capture_->status().state == capture::State::running) {
    const capture::Status running = capture_->status();
    throw CaptureRuns(fmt::format("capture: {} is being written to {}; allowed: one capture at a "
                                  "time; `capture stop` ends it",
                                  running.what, running.file));
  }
  if (capture_) {
    capture_->end(); // a failed one may still be about to take its taps away
  }
  auto next = std::make_unique<capture::Capture>(capture_plan(std::move(order)));
  {
    const Quiesce quiesced(*this);
    for (std::size_t i = 0; i < lcores_.size(); ++i) {
      lcores_[i]->trace().copy_to(&next->tap(i));
    }
  }
  capture_ = std::move(next);
  capture_->start([this] { copy_to_no_capture(); });
}

/// For who holds one_writer_ too: no ring may come between this and the capture's beginning.
capture::Plan Switch::capture_plan(CaptureOrder order) const {
  const auto limits = frame_limits(config_);
  capture::Plan plan{.file = std::move(order.file),
                     .what = std::move(order.what),
                     .filter = std::move(order.filter),
                     .count = order.count,
                     .most_bytes = *std::ranges::max_element(limits),
                     .lcores = lcores_.size(),
                     .clock_zero_ns = lcore::unix_time_of_zero(),
                     .names = {.ports = {}, .rings = {}}};
  for (const ring::Ring& ring : rings_->rings()) {
    plan.names.rings.push_back(ring.spec());
  }
  for (const config::PortConfig& port : config()->ports) {
    plan.names.ports.push_back(port.name);
  }
  return plan;
}

void Switch::copy_to_no_capture() {
  const Quiesce quiesced(*this);
  for (const auto& lcore : lcores_) {
    lcore->trace().copy_to(nullptr);
  }
}

void Switch::stop_capture() {
  const std::lock_guard lock(one_capture_);
  if (capture_) {
    capture_->end();
  }
}

std::optional<capture::Status> Switch::capture() const {
  const std::lock_guard lock(one_capture_);
  return capture_ ? std::optional(capture_->status()) : std::nullopt;
}

std::vector<stage::SenderSnapshot> Switch::senders(std::uint32_t id) {
  const Quiesce quiesced(*this);
  const std::uint16_t ring = index_of(id);
  return stage::snapshot_senders(*worker_of(ring).worker(), ring);
}

namespace {

/// What an lcore has to do.
struct Duties {
  bool receives = false;
  bool works = false;
  bool transmits = false;
};

Duties duties_of(Lcore& lcore) {
  return {.receives = lcore.receives(),
          .works = lcore.worker() != nullptr,
          .transmits = lcore.transmits()};
}

std::string names_of(const Duties& duties) {
  std::vector<std::string_view> roles;
  if (duties.receives) {
    roles.emplace_back("rx");
  }
  if (duties.works) {
    roles.emplace_back("worker");
  }
  if (duties.transmits) {
    roles.emplace_back("tx");
  }
  return fmt::format("{}", fmt::join(roles, ","));
}

} // namespace

std::vector<LcoreSnapshot> Switch::lcores() {
  std::vector<LcoreSnapshot> snapshots(lcores_.size());
  std::vector<Duties> duties(lcores_.size());
  {
    const Quiesce quiesced(*this);
    for (std::size_t i = 0; i < lcores_.size(); ++i) {
      if (const stage::Worker* worker = lcores_[i]->worker(); worker != nullptr) {
        snapshots[i].held = worker->held();
        snapshots[i].rings = worker->rings().size();
      }
      duties[i] = duties_of(*lcores_[i]);
      snapshots[i].frames = lcores_[i]->counters();
      snapshots[i].rounds = lcores_[i]->rounds();
    }
  }
  for (std::size_t i = 0; i < lcores_.size(); ++i) {
    snapshots[i].id = lcores_[i]->id();
    snapshots[i].roles = names_of(duties[i]);
    snapshots[i].numa_node = placement_.lcores[i].node;
  }
  return snapshots;
}

std::vector<Station> Switch::stations() const {
  std::vector<Station> stations;
  stations_.for_each(lcore::Clock().now().ms(), [&](const wire::MacAddress& mac, std::uint16_t port,
                                                    std::uint64_t age_ms, std::uint64_t pins) {
    stations.push_back({mac, port, age_ms, pins});
  });
  return stations;
}

std::uint32_t Switch::free_mbufs() const {
  return rte_mempool_avail_count(pool_);
}

} // namespace weir::control
