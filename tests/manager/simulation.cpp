// SPDX-License-Identifier: BSD-3-Clause

/// The manager's loop over a simulated store, switches, network, clock and owners: managers that
/// are killed, paused and cut off, or in doubt whether they lead, leases that are revoked, a store
/// that does not answer, for long too, or is an old one, which somebody claims or not, messages
/// that are lost, late and doubled, switches that restart, withdraw and refuse, allocations that
/// end, and strangers with tokens of others. After each step it is looked whether M1 to M7 of
/// docs/fabric.md hold.

#include "jobs/loop.hpp"
#include "jobs/ring_messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace weir::jobs::simulation {
namespace {

constexpr Time kFaults = 120'000;   // milliseconds in which faults come
constexpr Time kQuiet = 200'000;    // and then none, until all must be well
constexpr std::uint64_t kRings = 6; // that a switch has room for
constexpr std::uint64_t kMembers = 24;
constexpr std::uint64_t kFrames = 30'000;
constexpr int kManagers = 3;
constexpr Time kTakeOver = 5000; // until another manager leads
constexpr int kOwners = 6;
constexpr std::uint64_t kFirstTerm = 100; // an old store's count may be lower

/// A rule that does not hold. what() says which, and when.
class Broken : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t below(std::uint64_t count) { return engine_() % count; }

  bool one_in(std::uint64_t count) { return below(count) == 0; }

 private:
  std::mt19937_64 engine_;
};

/// What comes when.
class Clock {
 public:
  Time now = 0;

  void at(Time when, std::function<void()> work) {
    events_.push({when, ++last_, std::make_shared<std::function<void()>>(std::move(work))});
  }

  void in(Time wait, std::function<void()> work) { at(now + wait, std::move(work)); }

  bool step(Time end) {
    if (events_.empty() || events_.top().when > end) {
      return false;
    }
    const Event event = events_.top();
    events_.pop();
    now = event.when;
    (*event.work)();
    return true;
  }

 private:
  struct Event {
    Time when;
    std::uint64_t number;
    std::shared_ptr<std::function<void()>> work;

    bool operator<(const Event& other) const {
      return std::pair(when, number) > std::pair(other.when, other.number);
    }
  };

  std::priority_queue<Event> events_;
  std::uint64_t last_ = 0;
};

Site make_site() {
  constexpr int leaves = 3;
  constexpr int spines = 2;
  constexpr int hosts = 2;
  std::vector<std::string> nodes;
  std::vector<std::string> switches;
  for (int host = 0; host < leaves * hosts; ++host) {
    nodes.push_back(fmt::format("host{}", host));
  }
  for (int leaf = 0; leaf < leaves; ++leaf) {
    switches.push_back(fmt::format("leaf{}", leaf));
  }
  for (int spine = 0; spine < spines; ++spine) {
    switches.push_back(fmt::format("spine{}", spine));
  }
  plan::Topology topology(nodes, switches);
  const plan::LinkTraits traits{.bits_per_second = 100'000'000'000, .latency_ns = 1000};
  for (int host = 0; host < leaves * hosts; ++host) {
    topology.connect(topology.find(nodes[static_cast<std::size_t>(host)]),
                     topology.find(fmt::format("leaf{}", host / hosts)), traits);
  }
  for (int leaf = 0; leaf < leaves; ++leaf) {
    for (int spine = 0; spine < spines; ++spine) {
      topology.connect(topology.find(fmt::format("leaf{}", leaf)),
                       topology.find(fmt::format("spine{}", spine)), traits);
    }
  }
  Site site(std::move(topology));
  site.fabric = "sim";
  site.trees = spines;
  site.ports.resize(site.topology().links().size());
  for (plan::LinkId link = 0; link < site.topology().links().size(); ++link) {
    site.ports[link] = fmt::format("p{}", link);
  }
  for (int host = 0; host < leaves * hosts; ++host) {
    const plan::VertexId vertex = site.topology().find(fmt::format("host{}", host));
    const plan::LinkId link = site.topology().outgoing(vertex).front();
    site.endpoints[*wire::parse_ip(fmt::format("10.0.0.{}", host + 1))] = {
        vertex,
        {site.index().switch_at(site.topology().link(link).to), plan::Topology::reverse_of(link)}};
  }
  return site;
}

/// The store that all managers have. The term that leads alone writes.
struct SharedStore {
  std::map<std::string, std::string> items;
  std::uint64_t leader = kFirstTerm; // number of the term
  Time down_until = 0;
  std::map<std::string, std::string> backup;
};

struct World;

/// A manager's view of it.
class StoreOf : public store::Store {
 public:
  StoreOf(World& world, std::uint64_t term) : world_(world), term_(term) {}

  std::optional<std::vector<store::Item>> read_all() override;
  std::optional<std::string> read(const std::string& key) override;
  store::Written write(std::span<const store::Change> changes) override;
  store::Leadership leadership() override;

  Time doubted_until = 0;

 private:
  bool is_down() const;

  World& world_;
  const std::uint64_t term_;
};

/// Epoch and number.
using Term = std::pair<std::uint64_t, std::uint64_t>;

Term term_of(const v1::FabricTerm& term) {
  return {term.epoch(), term.number()};
}

/// A switch's side, as docs/control.md has it: nothing of the code that a switch runs.
struct SimSwitch {
  struct Ring {
    v1::LabelledRing as_asked;
    Time heard = 0;
  };

  std::string boot = "0";
  int boots = 0;
  bool is_cut = false; // from all managers
  Term highest;        // survives a restart
  Term ordered;        // of the last order
  std::uint64_t last_order = 0;
  std::map<std::uint32_t, Ring> rings;
};

struct Instance;

/// Somebody with a group of ranks.
struct Owner {
  v1::HoldJobRequest request;
  Instance* at = nullptr; // whom it calls
  CallId call = 0;
  std::string allocation;  // its name; empty: none
  std::string token;       // to which the request's digest fits; empty: none yet
  std::uint64_t job = 0;   // 0: it has not been told
  bool wants = false;      // it has begun, and not ended
  bool is_dead = false;    // without goodbye
  bool is_quiet = false;   // its members compute, and no switch hears them
  bool is_excused = false; // somebody may end its job: it, or a switch of it has lost the ring
  std::set<std::uint32_t> rings;

  /// The ring there is its own, and none of an old store's time that has the same number.
  bool has(const SimSwitch& at, std::uint32_t id) const {
    const auto found = at.rings.find(id);
    return rings.contains(id) && found != at.rings.end() &&
           found->second.as_asked.label().request_id() == request.request_id();
  }
};

/// A manager's process, from a start to its end.
struct Instance : Outside {
  Instance(World& given, std::uint64_t number, Term term);

  void claim(SwitchIndex at, const v1::ClaimFabricRequest& request) override;
  void apply(SwitchIndex at, const v1::ApplyRingsRequest& request) override;
  void remove(SwitchIndex at, const v1::RemoveRingsRequest& request) override;
  void watch(SwitchIndex at, const v1::WatchSwitchRequest& request) override;
  void tell(CallId call, const v1::JobEvent& event) override;
  void end(CallId call, const Outcome& outcome) override;

  void note(const std::string& kind, const std::string& words) override;

  void stop(const std::string&) override { is_over = true; }

  void begin_again(const std::string&) override { is_over = true; }

  using OrderAnswer = std::function<void(const Outcome&)>;

  void cut_off(Time until);
  bool is_cut_from(const SimSwitch& at) const;
  void expect_lead();
  OrderAnswer answer_to(SwitchIndex at, const v1::FabricOrder& order);

  /// A message comes to it, if it runs; a paused one gets it later.
  void receive(std::function<void(Loop&)> work);

  World& world;
  const std::uint64_t number; // of all that ever were
  const Term term;
  StoreOf store;
  Loop loop;
  bool is_over = false; // dead, or fenced
  Time paused_until = 0;
  Time cut_until = 0; // off from the store and all switches, but not from owners
};

struct World {
  explicit World(std::uint64_t seed) : dice(seed), switches(site.index().switches()) {}

  void run();

  // Faults.
  void fault();
  void great_fault();
  void restore();
  void look_for_wait();
  void claim_again();
  void forget(std::uint32_t id, SwitchIndex at);
  void lose_jobs_but(const std::map<std::string, std::string>& items);
  void elect();
  void restart(SwitchIndex at);
  void withdraw(SwitchIndex at);

  // Owners.
  void live(std::size_t owner);
  void begin_job(Owner& owner);
  void hold(Owner& owner);
  void break_call(Owner& owner);
  void ask_for_token(Owner& owner);
  void end_allocation(const std::string& name);
  void intrude();

  // The network: a message each way, perhaps lost, late or doubled.
  void send(std::function<void()> deliver);

  bool is_bad() const { return clock.now < kFaults; }

  bool is_rough() const { return is_bad() && clock.now >= great_until; }

  // Rules.
  void check() const;
  void expect_new(const v1::FabricLabel& label, std::uint64_t instance);
  void check_end() const;
  v1::SwitchSeen seen_at(SwitchIndex at, const v1::WatchSwitchRequest& request) const;
  void beat(SwitchIndex at, Instance& instance, const std::string& boot,
            const v1::WatchSwitchRequest& request);
  std::uint64_t epoch() const;

  Dice dice;
  Clock clock;
  Site site = make_site();
  SharedStore shared;
  std::vector<SimSwitch> switches;
  std::vector<std::unique_ptr<Instance>> instances; // all that ever were
  std::vector<Owner> owners{kOwners};
  CallId last_call = 0;
  std::uint64_t granted = 0; // allocations, in all
  std::set<CallId> strangers;
  std::map<CallId, std::size_t> owner_of_call;
  std::map<std::pair<std::uint32_t, SwitchIndex>, std::string> ever_made; // ring, switch → message,
                                                                          // or nobody knows: empty
  std::map<std::uint64_t, std::string> ever_asked; // job → request
  std::uint64_t placed = 0;                        // jobs, in all
  std::uint64_t restored_by = 0;                   // the first instance with an old store; 0: none
  Origin origin = Origin::managers;                // of the store, as the next manager is told
  bool is_claimed = false;                         // or will be: no id may be given again
  bool is_told = false;                            // the next manager, what the store is
  bool is_adopted = false;                         // or will be: if it is told, no job ends by it
  std::uint64_t epoch_before = 0;                  // of the last restore
  std::set<std::uint32_t> lost; // rings that an old store does not know, as long as they are there
  std::set<std::string> over;   // keys of jobs of an old store that were over when it came back
  Time great_until = 0;         // a great fault's end
  bool has_news = false;        // for the rules
};

store::Leadership StoreOf::leadership() {
  return {.standing = world_.clock.now < doubted_until ? store::Standing::in_doubt
                                                       : store::Standing::leads};
}

bool StoreOf::is_down() const {
  return world_.clock.now < std::max(world_.shared.down_until, doubted_until);
}

std::optional<std::vector<store::Item>> StoreOf::read_all() {
  if (is_down()) {
    return std::nullopt;
  }
  std::vector<store::Item> items;
  for (const auto& [key, value] : world_.shared.items) {
    items.push_back({key, value});
  }
  return items;
}

std::optional<std::string> StoreOf::read(const std::string& key) {
  if (is_down()) {
    return std::nullopt;
  }
  const auto found = world_.shared.items.find(key);
  return found == world_.shared.items.end() ? std::string() : found->second;
}

store::Written StoreOf::write(std::span<const store::Change> changes) {
  const bool is_lost = is_down() || (world_.is_bad() && world_.dice.one_in(60));
  const bool is_done = !is_down() && (!is_lost || world_.dice.one_in(2));
  if (world_.shared.leader != term_ && !is_lost) {
    return store::Written::fenced;
  }
  if (is_done && world_.shared.leader == term_) {
    world_.has_news = true;
    for (const store::Change& change : changes) {
      if (change.value) {
        world_.shared.items[change.key] = *change.value;
      } else {
        world_.shared.items.erase(change.key);
      }
    }
  }
  return is_lost ? store::Written::lost : store::Written::done;
}

Instance::Instance(World& given, std::uint64_t given_number, Term given_term)
    : world(given), number(given_number), term(std::move(given_term)), store(given, term.second),
      loop(given.site, store, *this, {fmt::format("m{}", number), {term.first, term.second}}) {}

void Instance::receive(std::function<void(Loop&)> work) {
  if (is_over) {
    return;
  }
  if (world.clock.now < paused_until) {
    world.clock.at(paused_until, [this, work = std::move(work)] { receive(work); });
    return;
  }
  work(loop);
}

void World::send(std::function<void()> deliver) {
  const Time usual = 1 + dice.below(40);
  if (!is_bad()) {
    clock.in(usual, std::move(deliver));
    return;
  }
  if (dice.one_in(25)) {
    return; // lost
  }
  if (dice.one_in(25)) {
    clock.in(usual + dice.below(15'000), deliver); // doubled
  }
  clock.in(dice.one_in(15) ? usual + dice.below(12'000) : usual, std::move(deliver));
}

void Instance::note(const std::string& kind, const std::string& words) {
  if (std::getenv("SAY"))
    fmt::print("{} m{}: {}: {}\n", world.clock.now, number, kind, words);
}

void Instance::cut_off(Time until) {
  cut_until = until;
  store.doubted_until = until;
}

bool Instance::is_cut_from(const SimSwitch& at) const {
  return at.is_cut || world.clock.now < cut_until;
}

void Instance::expect_lead() {
  if (store.leadership().standing != store::Standing::leads) {
    throw Broken("M4: an order of a manager that does not know whether it leads");
  }
}

void Instance::claim(SwitchIndex at, const v1::ClaimFabricRequest& request) {
  expect_lead();
  auto answered = std::make_shared<bool>(false);
  const auto answer = [this, at, answered](const Outcome& outcome,
                                           const v1::ClaimFabricResponse& response) {
    receive([=, this](Loop& loop) {
      if (!std::exchange(*answered, true)) {
        loop.on_claimed(at, outcome, response, world.clock.now);
      }
    });
  };
  world.send([this, at, request, answer] {
    SimSwitch& to = world.switches[at];
    if (is_cut_from(to)) {
      return;
    }
    if (term_of(request.term()) < to.highest) {
      v1::ClaimFabricResponse holder;
      holder.mutable_highest()->set_epoch(to.highest.first);
      holder.mutable_highest()->set_number(to.highest.second);
      world.send([=] { answer({Code::over, "term is over"}, holder); });
      return;
    }
    to.highest = term_of(request.term());
    v1::ClaimFabricResponse response;
    response.set_boot(to.boot);
    world.send([=] { answer({}, response); });
  });
  world.clock.in(10'000, [answer] { answer({Code::no_answer, "no answer"}, {}); });
}

namespace {

/// What the switch says to an order; ok: it is this one's turn.
Outcome take_order(SimSwitch& to, const v1::FabricOrder& order) {
  if (term_of(order.term()) != to.highest) {
    return {Code::over, "term is over"};
  }
  if (order.boot() != to.boot) {
    return {Code::no_answer, "another boot"};
  }
  if (to.ordered != to.highest) {
    to.ordered = to.highest;
    to.last_order = 0;
  }
  if (order.number() <= to.last_order) {
    return {Code::no_answer, "overtaken"};
  }
  to.last_order = order.number();
  return {};
}

struct Taken {
  std::uint64_t rings = 0;
  std::uint64_t members = 0;
  std::uint64_t frames = 0;

  void add(const v1::Ring& ring) {
    const std::uint64_t children = children_of(ring);
    const std::uint64_t packets = (ring.max_message_bytes() + ring.mtu() - 1) / ring.mtu();
    rings += 1;
    members += children + (ring.has_parent() ? 1 : 0);
    frames += children * 2 * ring.window() * packets;
  }

  bool fits() const { return rings <= kRings && members <= kMembers && frames <= kFrames; }
};

} // namespace

/// The first of an order's answers counts.
Instance::OrderAnswer Instance::answer_to(SwitchIndex at, const v1::FabricOrder& order) {
  auto answered = std::make_shared<bool>(false);
  return [this, at, number = order.number(), answered](const Outcome& outcome) {
    receive([=, this](Loop& loop) {
      if (!std::exchange(*answered, true)) {
        loop.on_ordered(at, number, outcome, world.clock.now);
      }
    });
  };
}

void Instance::apply(SwitchIndex at, const v1::ApplyRingsRequest& request) {
  expect_lead();
  const OrderAnswer answer = answer_to(at, request.order());
  world.send([this, at, request, answer] {
    SimSwitch& to = world.switches[at];
    if (is_cut_from(to)) {
      return;
    }
    Outcome outcome = take_order(to, request.order());
    const bool are_there = std::ranges::all_of(
        request.rings(), [&](const auto& ring) { return to.rings.contains(ring.ring().id()); });
    if (outcome.code == Code::ok && !are_there && world.is_bad() && world.dice.one_in(20)) {
      outcome = {Code::refused, "no room here"};
    }
    if (outcome.code == Code::ok) {
      Taken taken;
      for (const auto& [id, ring] : to.rings) {
        taken.add(ring.as_asked.ring());
      }
      for (const v1::LabelledRing& ring : request.rings()) {
        const std::string text = ring.SerializeAsString();
        std::string& before = world.ever_made[{ring.ring().id(), at}];
        before = before.empty() ? text : before;
        if (before != text) {
          throw Broken(fmt::format("M7: ring {} was another one before", ring.ring().id()));
        }
        world.expect_new(ring.label(), number);
        if (!to.rings.contains(ring.ring().id())) {
          taken.add(ring.ring());
        }
        world.has_news = true;
        if (std::getenv("SAY"))
          fmt::print("{} m{} makes {} of job {} at {}\n", world.clock.now, number, ring.ring().id(),
                     ring.label().job(), at);
        to.rings.try_emplace(ring.ring().id(), SimSwitch::Ring{ring, world.clock.now});
        if (number < world.restored_by) {
          world.lost.insert(ring.ring().id());
        }
      }
      if (!taken.fits()) {
        throw Broken(fmt::format("M1: {} has {} rings, {} members, {} frames", at, taken.rings,
                                 taken.members, taken.frames));
      }
    }
    world.send([=] { answer(outcome); });
  });
  world.clock.in(10'000, [answer] { answer({Code::no_answer, "no answer"}); });
}

/// Of a job's number, by an order of this instance.
void World::expect_new(const v1::FabricLabel& label, std::uint64_t instance) {
  if (!is_claimed && instance < restored_by) {
    return;
  }
  const auto asked = ever_asked.try_emplace(label.job(), label.request_id()).first;
  if (asked->second != label.request_id()) {
    throw Broken(fmt::format("M7: job {} was another one before", label.job()));
  }
}

void Instance::remove(SwitchIndex at, const v1::RemoveRingsRequest& request) {
  expect_lead();
  const OrderAnswer answer = answer_to(at, request.order());
  world.send([this, at, request, answer] {
    SimSwitch& to = world.switches[at];
    if (is_cut_from(to)) {
      return;
    }
    const Outcome outcome = take_order(to, request.order());
    if (outcome.code == Code::ok) {
      for (const std::uint32_t id : request.ids()) {
        if (std::getenv("SAY"))
          fmt::print("{} m{} removes {} at {}: {}\n", world.clock.now, number, id, at,
                     to.rings.contains(id));
        for (const Owner& owner : world.owners) {
          if (owner.job != 0 && owner.has(to, id) && !owner.is_excused) {
            throw Broken(fmt::format("M3: ring {} of a running job was removed at {}", id,
                                     world.site.name_of(at)));
          }
        }
        to.rings.erase(id);
        if (number < world.restored_by) {
          world.forget(id, at);
        }
      }
    }
    world.send([=] { answer(outcome); });
  });
  world.clock.in(10'000, [answer] { answer({Code::no_answer, "no answer"}); });
}

void Instance::watch(SwitchIndex at, const v1::WatchSwitchRequest& request) {
  world.beat(at, *this, world.switches[at].boot, request);
}

v1::SwitchSeen World::seen_at(SwitchIndex at, const v1::WatchSwitchRequest& request) const {
  const SimSwitch& from = switches[at];
  v1::SwitchSeen seen;
  seen.set_boot(from.boot);
  seen.set_last_order(from.ordered == from.highest ? from.last_order : 0);
  for (const auto& [id, ring] : from.rings) {
    v1::SeenRing& row = *seen.add_rings();
    row.set_id(id);
    row.set_is_managed(true);
    row.set_silent_ms(clock.now - ring.heard);
    *row.mutable_label() = ring.as_asked.label();
    if (request.with_rings()) {
      *row.mutable_ring() = ring.as_asked.ring();
    }
  }
  seen.mutable_room()->set_rings(kRings);
  seen.mutable_room()->set_members(kMembers);
  seen.mutable_room()->set_frames(kFrames);
  return seen;
}

/// A stream's messages come in their order. It breaks where the switch restarts or is cut.
void World::beat(SwitchIndex at, Instance& instance, const std::string& boot,
                 const v1::WatchSwitchRequest& request) {
  if (instance.is_over) {
    return;
  }
  const SimSwitch& from = switches[at];
  const bool is_broken =
      instance.is_cut_from(from) || from.boot != boot || (is_rough() && dice.one_in(40));
  if (is_broken || from.highest != term_of(request.term())) {
    const Outcome outcome{!is_broken ? Code::over : Code::no_answer, "the stream broke"};
    clock.in(20, [this, &instance, at, outcome] {
      instance.receive([=, this](Loop& loop) { loop.on_watch_ended(at, outcome, clock.now); });
    });
    return;
  }
  const v1::SwitchSeen seen = seen_at(at, request);
  clock.in(20, [this, &instance, at, seen] {
    instance.receive([=, this](Loop& loop) { loop.on_seen(at, seen, clock.now); });
  });
  clock.in(1000, [=, this, &instance] { beat(at, instance, boot, request); });
}

void Instance::tell(CallId call, const v1::JobEvent& event) {
  if (world.strangers.contains(call)) {
    throw Broken("a stranger has rings");
  }
  const auto found = world.owner_of_call.find(call);
  if (found == world.owner_of_call.end()) {
    return;
  }
  Owner& owner = world.owners[found->second];
  if (owner.call != call) {
    return;
  }
  if (event.has_over()) {
    if (event.over().why().empty()) {
      throw Broken("M6: a job ended, and nobody says why");
    }
    if (!owner.is_excused) {
      throw Broken(fmt::format("M3: a running job was ended: {}", event.over().why()));
    }
    owner.job = 0;
    owner.wants = false;
    return;
  }
  if (!event.has_placed()) {
    return;
  }
  if (owner.job == 0) {
    ++world.placed;
  }
  owner.job = event.placed().job();
  owner.rings.clear();
  for (const v1::JobRing& ring : event.placed().rings()) {
    owner.rings.insert(ring.id());
  }
  v1::JobRecord record;
  const auto stored = world.shared.items.find(fmt::format("job/{}", owner.job));
  if (stored == world.shared.items.end()) { // who tells it does not lead any more
    owner.is_excused = true;
    return;
  }
  record.ParseFromString(stored->second);
  for (const v1::RingRecord& ring : record.rings()) {
    for (const v1::PartRecord& part : ring.parts()) {
      const SwitchIndex at = *world.site.switch_named(part.switch_name());
      if (!world.ever_made.contains({ring.id(), at})) {
        throw Broken(
            fmt::format("M2: ring {} was never made at {}", ring.id(), part.switch_name()));
      }
      // It may be gone again, which the owner learns next.
      owner.is_excused = owner.is_excused || !world.switches[at].rings.contains(ring.id());
    }
  }
}

void Instance::end(CallId call, const Outcome& outcome) {
  if (world.strangers.contains(call) && outcome.code != Code::not_allowed &&
      outcome.code != Code::unavailable) {
    throw Broken(fmt::format("a stranger is answered: {}", outcome.words));
  }
  const auto found = world.owner_of_call.find(call);
  if (found == world.owner_of_call.end()) {
    return;
  }
  Owner& owner = world.owners[found->second];
  if (outcome.words.empty()) {
    throw Broken("M6: a call ended, and nobody says why");
  }
  if (owner.call != call) {
    return;
  }
  if (owner.job != 0 && !owner.is_excused && outcome.code != Code::unavailable) {
    throw Broken(fmt::format("M3: the owner of a running job is refused: {}", outcome.words));
  }
  owner.call = 0;
  owner.at = nullptr;
  if (outcome.code != Code::unavailable) {
    owner.wants = false; // it was refused, or is over
    owner.job = 0;
  }
}

void World::restart(SwitchIndex at) {
  SimSwitch& one = switches[at];
  one.boot = fmt::format("{}", ++one.boots);
  one.ordered = {};
  one.last_order = 0;
  for (Owner& owner : owners) {
    for (const std::uint32_t ring : owner.rings) {
      owner.is_excused = owner.is_excused || one.rings.contains(ring);
    }
  }
  for (const auto& [id, ring] : std::exchange(one.rings, {})) {
    forget(id, at);
  }
}

void World::withdraw(SwitchIndex at) {
  SimSwitch& one = switches[at];
  if (one.rings.empty()) {
    return;
  }
  const std::uint32_t id = one.rings.begin()->first;
  one.rings.erase(id);
  forget(id, at);
  for (Owner& owner : owners) {
    owner.is_excused = owner.is_excused || owner.rings.contains(id);
  }
}

/// As the store has it; there is none at first.
std::uint64_t World::epoch() const {
  v1::FabricRecord record;
  const auto stored = shared.items.find("fabric");
  if (stored != shared.items.end()) {
    record.ParseFromString(stored->second);
  }
  return std::max<std::uint64_t>(record.epoch(), 1);
}

/// A manager more takes the lead. Those before do not know it yet.
void World::elect() {
  ++shared.leader;
  auto& made = instances.emplace_back(
      std::make_unique<Instance>(*this, instances.size(), Term{epoch(), shared.leader}));
  Instance* const instance = made.get();
  instance->loop.begin(clock.now, origin);
  const auto tick = [this, instance](const auto& self) -> void {
    if (instance->is_over) {
      return;
    }
    instance->receive([this](Loop& loop) { loop.on_time(clock.now); });
    clock.in(200, [self] { self(self); });
  };
  clock.in(200, [tick] { tick(tick); });
  const auto living = [this](const auto& one) {
    return !one->is_over && clock.now >= one->cut_until;
  };
  if (std::ranges::count_if(instances, living) > kManagers) {
    (*std::ranges::find_if(instances, living))->is_over = true; // its machine is needed
  }
}

/// Longer than an owner may be away, and alone: the minute begins anew with each leader.
void World::great_fault() {
  great_until = clock.now + kOwnerAway + kTakeOver + 5'000 + dice.below(20'000);
  if (dice.one_in(2)) {
    shared.down_until = great_until;
    std::ranges::for_each(owners, [this](Owner& owner) { break_call(owner); });
  } else {
    instances.back()->cut_off(great_until);
    clock.in(kTakeOver, [this] { elect(); });
  }
}

/// Owners of jobs that the store does not have as they are will hear so.
void World::lose_jobs_but(const std::map<std::string, std::string>& items) {
  std::set<std::uint32_t> known;
  for (const auto& [key, value] : items) {
    v1::JobRecord record;
    if (key.starts_with("job/") && record.ParseFromString(value) &&
        record.state() == v1::JobRecord::PLACED) {
      for (const v1::RingRecord& ring : record.rings()) {
        known.insert(ring.id());
      }
    }
  }
  for (Owner& owner : owners) {
    owner.is_excused = owner.is_excused ||
                       ((!is_adopted || !is_told) && !std::ranges::includes(known, owner.rings));
  }
  for (const SimSwitch& one : switches) {
    for (const auto& [id, ring] : one.rings) {
      if (!known.contains(id)) {
        lost.insert(id);
      }
    }
  }
}

/// What the store does not know of, and no switch any more, nobody can tell from what never was: so
/// somebody has to claim.
void World::forget(std::uint32_t id, SwitchIndex at) {
  if (is_claimed) {
    return;
  }
  v1::FabricRecord record;
  record.ParseFromString(shared.items["fabric"]);
  if (lost.contains(id) && record.next_ring() <= id) {
    ever_made[{id, at}].clear();
  }
}

/// All managers end, and another one begins with an old store, or an empty one, with a higher term
/// than before or a lower one. If somebody claims, or adopts, all managers are told what the store
/// is until he has done so; or they see it by the switches, which all know a higher term. Who is
/// not told may answer owners before he sees it. Then the same may happen once more, with the same
/// old store.
void World::restore() {
  if (std::getenv("SAY"))
    fmt::print("{} restore\n", clock.now);
  const bool is_first = restored_by == 0;
  epoch_before = epoch();
  for (const auto& instance : instances) {
    instance->is_over = true;
  }
  is_adopted = dice.one_in(2);
  is_claimed = is_adopted || !is_first || dice.one_in(2);
  is_told = is_claimed && dice.one_in(2);
  const bool is_lost = is_adopted && dice.one_in(2); // altogether, with what backup there was
  shared.items = is_lost ? std::map<std::string, std::string>() : shared.backup;
  lose_jobs_but(shared.items);
  restored_by = instances.size();
  if (is_first && is_claimed && dice.one_in(2)) {
    clock.in(15'000 + dice.below(20'000), [this] { restore(); });
  }
  if (is_claimed) {
    origin = is_told ? Origin::backup : Origin::managers;
    shared.leader = origin == Origin::managers || dice.one_in(2) ? 0 : shared.leader;
    clock.in(dice.below(5000), [this] { claim_again(); });
  } else {
    for (auto& [where, text] : ever_made) {
      if (!switches[where.second].rings.contains(where.first)) {
        text.clear();
      }
    }
    ever_asked.clear();
    look_for_wait();
  }
  elect();
}

/// Nobody knows that the store is an old one, until the manager finds out and asks.
void World::look_for_wait() {
  if (instances.back()->loop.picture({.name = "", .is_operator = true}).awaits_claim()) {
    claim_again();
    return;
  }
  clock.in(1000, [this] { look_for_wait(); });
}

/// Somebody who asks for it until it is done.
void World::claim_again() {
  if (epoch() > epoch_before) {
    origin = Origin::managers;
    elect();
    return;
  }
  instances.back()->receive([this](Loop& loop) {
    try {
      const Caller root{.name = "", .is_operator = true};
      is_adopted ? loop.adopt(root, {}, clock.now) : loop.claim(root, clock.now);
    } catch (const Loop::Refused&) {
      // The store does not answer, or a switch has not said yet whom it obeys.
    }
  });
  clock.in(1000, [this] { claim_again(); });
}

void World::fault() {
  Instance& last = *instances.back();
  const SwitchIndex at = static_cast<SwitchIndex>(dice.below(switches.size()));
  switch (is_rough() ? dice.below(10) : 9) {
  case 0:
    restart(at);
    break;
  case 1:
    withdraw(at);
    break;
  case 2:
    switches[at].is_cut = true;
    clock.in(dice.below(20'000), [this, at] { switches[at].is_cut = false; });
    break;
  case 3:
    last.is_over = true;
    clock.in(kTakeOver, [this] { elect(); });
    break;
  case 4:
    last.paused_until = clock.now + 1000 + dice.below(30'000);
    clock.in(kTakeOver, [this] { elect(); });
    break;
  case 5: // its lease is revoked, and nobody knows why
    elect();
    break;
  case 6:
    shared.down_until = std::max(shared.down_until, clock.now + dice.below(8000));
    break;
  case 7:
    last.store.doubted_until = clock.now + dice.below(10'000);
    break;
  default:
    break;
  }
  clock.in(500 + dice.below(12'000), [this] {
    if (is_bad()) {
      fault();
    }
  });
}

void World::begin_job(Owner& owner) {
  owner = {};
  std::string id(16, '\0');
  for (char& byte : id) {
    byte = static_cast<char>(dice.below(256));
  }
  owner.request.set_request_id(id);
  owner.request.set_window(8);
  owner.request.set_message_bytes(65536);
  owner.request.set_mtu(1024);
  owner.request.set_rings_wanted(static_cast<std::uint32_t>(1 + dice.below(2)));
  owner.request.set_rings_least(1);
  owner.request.set_wait_ms(static_cast<std::uint32_t>(dice.below(2) * 5000));
  std::vector<int> hosts{1, 2, 3, 4, 5, 6};
  for (std::size_t left = hosts.size(); left > 1; --left) {
    std::swap(hosts[left - 1], hosts[dice.below(left)]);
  }
  hosts.resize(2 + dice.below(5));
  for (const int host : hosts) {
    owner.request.add_members()->add_addresses(fmt::format("10.0.0.{}", host));
  }
  owner.wants = true;
  owner.is_quiet = dice.one_in(2);
  if (dice.one_in(3)) {
    owner.allocation = fmt::format("sim:{}", ++granted);
  }
}

/// As a scheduler and a host do: again and again, until a manager that leads has stored it.
void World::ask_for_token(Owner& owner) {
  instances.back()->receive([this, &owner, name = owner.allocation](Loop& loop) {
    if (owner.allocation != name || !owner.token.empty()) {
      return;
    }
    v1::GrantAllocationRequest request;
    request.set_name(name);
    request.set_hosts("host[0-5]");
    try {
      loop.grant({.name = "scheduler", .is_scheduler = true}, request, clock.now);
      const std::string token = fmt::format("{}.{}", name, dice.below(1'000'000));
      const std::uint64_t id = loop.issue_token({.name = "host0"}, name, token);
      owner.token = token;
      owner.request.set_allocation(id);
      owner.request.set_token(token);
    } catch (const Loop::Refused&) {
      // It does not lead, or the store does not answer.
    }
  });
}

/// The same, until there is none of this name.
void World::end_allocation(const std::string& name) {
  instances.back()->receive([this, name](Loop& loop) {
    Code code = Code::ok;
    try {
      loop.end_allocation({.name = "scheduler", .is_scheduler = true}, name, clock.now);
    } catch (const Loop::Refused& refused) {
      code = refused.code();
    }
    if (code != Code::not_found) {
      clock.in(1000, [this, name] { end_allocation(name); });
    }
  });
}

/// Somebody with no token, with that of an allocation that has ended, or of another one.
void World::intrude() {
  Owner stranger;
  begin_job(stranger);
  const Owner& other = owners[dice.below(owners.size())];
  stranger.request.set_allocation(1 + dice.below(granted + 1));
  if (stranger.request.allocation() != other.request.allocation()) {
    stranger.request.set_token(other.token);
  }
  const CallId call = ++last_call;
  strangers.insert(call);
  instances.back()->receive([this, call, request = stranger.request](Loop& loop) {
    loop.on_hold(call, {}, request, clock.now);
  });
}

void World::hold(Owner& owner) {
  if (!owner.allocation.empty() && owner.token.empty()) {
    ask_for_token(owner);
    return;
  }
  owner.at = instances.back().get();
  owner.call = ++last_call;
  owner_of_call[owner.call] = static_cast<std::size_t>(&owner - owners.data());
  clock.in(10, [this, call = owner.call, at = owner.at, request = owner.request] {
    at->receive([=, this](Loop& loop) {
      const Caller root{.name = "", .is_operator = true};
      loop.on_hold(call, request.allocation() == 0 ? root : Caller{}, request, clock.now);
    });
  });
}

/// Its connection breaks, and both run on.
void World::break_call(Owner& owner) {
  if (owner.call != 0) {
    owner.at->receive([call = std::exchange(owner.call, 0), this](Loop& loop) {
      loop.on_call_ended(call, clock.now);
    });
  }
}

/// A few times a second.
void World::live(std::size_t number) {
  Owner& owner = owners[number];
  clock.in(100 + dice.below(200), [this, number] { live(number); });
  if (owner.job != 0 && !owner.is_dead && !owner.is_quiet) { // its members are heard
    for (SimSwitch& one : switches) {
      for (const std::uint32_t ring : owner.rings) {
        if (const auto found = one.rings.find(ring); found != one.rings.end()) {
          found->second.heard = clock.now;
        }
      }
    }
  }
  if (owner.call != 0 && owner.at->is_over) { // the connection breaks
    owner.call = 0;
    owner.at = nullptr;
  }
  if (owner.is_dead) {
    return;
  }
  if (!owner.wants) {
    if (is_bad() && dice.one_in(10)) {
      begin_job(owner);
    }
    return;
  }
  if (owner.call == 0) {
    hold(owner);
    return;
  }
  if (is_rough() && dice.one_in(200)) {
    break_call(owner);
    return;
  }
  const bool is_time = clock.now > kFaults || (is_rough() && dice.one_in(120));
  if (owner.job != 0 && is_time && !owner.allocation.empty()) {
    owner.is_excused = true;
    end_allocation(std::exchange(owner.allocation, ""));
    return;
  }
  if (owner.job != 0 && is_time) {
    owner.is_excused = true;
    const bool dies = is_bad() && dice.one_in(4);
    const CallId call = owner.call;
    if (dies) {
      owner.is_dead = true;
      owner.call = 0;
      owner.at->receive([=, this](Loop& loop) { loop.on_call_ended(call, clock.now); });
      clock.in(5000, [this, number] { owners[number] = {}; });
      return;
    }
    owner.at->receive([job = owner.job, this](Loop& loop) {
      try {
        loop.end_job({.name = "", .is_operator = true}, job, "", clock.now);
      } catch (const Loop::Refused&) {
        // It is over already, or the store does not answer: then the call's end tells.
      }
    });
  }
}

/// The store's promises, and what is there without them.
void World::check() const {
  std::vector<std::map<std::uint32_t, const v1::Ring*>> promised(switches.size());
  std::vector<v1::JobRecord> records;
  records.reserve(shared.items.size());
  for (const auto& [key, value] : shared.items) {
    if (key.starts_with("job/")) {
      records.emplace_back().ParseFromString(value);
    }
  }
  for (const v1::JobRecord& record : records) {
    for (const v1::RingRecord& ring : record.rings()) {
      for (const v1::PartRecord& part : ring.parts()) {
        promised[*site.switch_named(part.switch_name())][ring.id()] = &part.ring();
      }
    }
  }
  for (SwitchIndex at = 0; at < switches.size(); ++at) {
    for (const auto& [id, ring] : switches[at].rings) {
      if (!lost.contains(id)) {
        promised[at].emplace(id, &ring.as_asked.ring());
      }
    }
    Taken taken;
    for (const auto& [id, ring] : promised[at]) {
      taken.add(*ring);
    }
    if (!taken.fits()) {
      throw Broken(fmt::format("M1, M5: {} is promised {} rings, {} members, {} frames",
                               site.name_of(at), taken.rings, taken.members, taken.frames));
    }
  }
}

/// No fault for long, and no job is wanted: nothing is left.
void World::check_end() const {
  for (const auto& [key, value] : shared.items) {
    if (key.starts_with("job/")) {
      v1::JobRecord record;
      record.ParseFromString(value);
      throw Broken(fmt::format("M5: {} is still there, state {}: {}", key,
                               static_cast<int>(record.state()), record.why()));
    }
  }
  for (SwitchIndex at = 0; at < switches.size(); ++at) {
    if (!switches[at].rings.empty()) {
      throw Broken(fmt::format("M2: ring {} is left at {}", switches[at].rings.begin()->first,
                               site.name_of(at)));
    }
  }
}

void World::run() {
  elect();
  for (std::size_t owner = 0; owner < owners.size(); ++owner) {
    live(owner);
  }
  clock.in(1000, [this] { fault(); });
  for (Time when = 3000; when < kFaults; when += 9000) {
    clock.at(when, [this] { intrude(); });
  }
  if (dice.one_in(2)) {
    clock.in(15'000 + dice.below(20'000), [this] { great_fault(); });
  } else if (dice.one_in(2)) {
    clock.in(10'000 + dice.below(30'000), [this] { shared.backup = shared.items; });
    clock.in(50'000 + dice.below(30'000), [this] { restore(); });
  }
  clock.at(kFaults, [this] {
    shared.down_until = 0;
    for (SimSwitch& one : switches) {
      one.is_cut = false;
    }
    if (instances.back()->is_over || instances.back()->term.second != shared.leader) {
      elect();
    }
  });
  while (clock.step(kFaults + kQuiet)) {
    if (std::exchange(has_news, false)) {
      check();
    }
  }
  check_end();
}

} // namespace
} // namespace weir::jobs::simulation

int main(int argc, char** argv) {
  using namespace weir::jobs::simulation;
  std::uint64_t first = 1;
  std::uint64_t last = 200;
  if (argc == 3) {
    first = std::strtoull(argv[1], nullptr, 10);
    last = std::strtoull(argv[2], nullptr, 10);
  } else if (argc != 1) {
    fmt::print(stderr, "usage: manager_simulation [FIRST LAST]\n");
    return 2;
  }
  std::uint64_t placed = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    World world(seed);
    try {
      world.run();
    } catch (const Broken& broken) {
      fmt::print("seed {}, {} ms: {}\n", seed, world.clock.now, broken.what());
      return 1;
    }
    placed += world.placed;
  }
  fmt::print("manager_simulation: {} seeds, {} jobs had rings\n", last - first + 1, placed);
  return placed == 0 ? 1 : 0;
}
