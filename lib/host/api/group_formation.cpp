// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/group_formation.hpp"

#include "host/api/node_formation.hpp"
#include "host/api/transport_options.hpp"
#include "host/base/control_note.hpp"
#include "host/base/stall_timer.hpp"
#include "host/collective/lone_reducer.hpp"
#include "host/collective/ring_collectives.hpp"
#include "host/collective/switch_reducer.hpp"
#include "host/rendezvous/agreement.hpp"
#include "host/rendezvous/allocated_rings.hpp"
#include "host/rendezvous/hello_outcomes.hpp"
#include "host/rendezvous/rendezvous.hpp"
#include "host/switch_rings/held_rings.hpp"
#include "host/switch_rings/switch_access.hpp"
#include "program/operator.hpp"
#include "random/random_bytes.hpp"
#include "wire/address.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::host {
namespace {

/// Wall-clock seconds. A job that is restarted has a larger epoch, also after a reboot.
std::uint32_t draw_epoch() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count());
}

/// Random, not 0. Runs that start in the same second differ. Who guessed it could take a ring that
/// is made for the group.
std::uint32_t draw_nonce() {
  return random_number(1, UINT32_MAX);
}

std::vector<std::uint32_t> rings_without_maker(const GroupOptions& options) {
  return options.ring_ids == RingIds::offered ? open_rings(1) : options.rings;
}

/// How long the ranks wait for answers to their hellos. Who can go on without an answer needs time
/// to agree on that, which the other ranks do not wait for longer than form_timeout.
std::chrono::milliseconds hello_patience(const GroupOptions& options) {
  if (options.rings.size() == 1 && options.fallback == Fallback::none) {
    return options.timeout;
  }
  return std::min(options.timeout, options.form_timeout / 2);
}

/// The error of a ring that may be silent, with what a person may do. Other errors are unchanged.
Error with_advice(const Error& error, const std::string& advice) {
  const bool may_be_silence =
      error.code() == ErrorCode::timeout || error.code() == ErrorCode::retry_exceeded;
  if (!may_be_silence || advice.empty()) {
    return error;
  }
  return {error.code(), error.rank(), fmt::format("{}; {}", error.what(), advice)};
}

/// form() may be called once.
class GroupFormation {
 public:
  GroupFormation(const GroupOptions& options, std::unique_ptr<Transport> transport,
                 MeetingPlace place, const StopOrder* stop)
      : options_(options), stop_(stop),
        plan_(transport_plan(options)), membership_{.transport = std::move(transport)},
        rendezvous_(meeting(std::move(place))), nodes_(options_, rendezvous_, membership_) {
    watch_frames();
    membership_.members.resize(options.world);
    std::iota(membership_.members.begin(), membership_.members.end(), 0);
  }

  GroupFormation(const GroupOptions& options, std::unique_ptr<Transport> transport,
                 Successors successors)
      : options_(options), stop_(nullptr),
        plan_(transport_plan(options)), membership_{.transport = std::move(transport)},
        rendezvous_(std::move(successors.rendezvous)), nodes_(options_, rendezvous_, membership_) {
    watch_frames();
    membership_.history = std::move(successors.history);
    membership_.members = std::move(successors.members);
    membership_.callers_turned_away = successors.callers_turned_away;
    taken_ring_ = successors.taken_ring;
  }

  Membership form();

 private:
  Rendezvous meeting(MeetingPlace place) const;
  void watch_frames();
  void meet();
  void go_alone();
  std::uint32_t least_epoch() const;
  Error too_early(std::uint32_t epoch) const;
  Incarnation suggestion() const;
  RingSource ring_source() const;
  void leave_taken_ring(const std::vector<Introduction>& introductions);
  void claim_rings(const std::vector<Introduction>& introductions);
  Incarnation agreed(const std::vector<Introduction>& introductions);
  std::optional<Error> agree_on_rings(const std::vector<Introduction>& introductions);
  AllocatedRings make_rings(const std::vector<Introduction>& introductions);
  AllocatedRings hold_rings(const std::vector<Introduction>& introductions,
                            const std::function<bool()>& has_ended);
  void reach_other_nodes(const std::vector<Introduction>& introductions);
  void share_nodes();
  void connect(const std::vector<Blob>& addresses);
  WindowConfig window_config(std::size_t channel) const;
  wire::OperatorTable operators_for_switch() const;
  void greet();
  HelloOutcomes greet_for_node();
  HelloOutcomes exchange_hellos(const std::vector<const MessageWindow*>& windows);
  std::optional<Error> await_answers();
  std::optional<Error> outcome_of(std::size_t channel, const MessageWindow& window,
                                  const std::string& advice) const;
  Error silence_of(std::size_t channel, const MessageWindow& window,
                   const std::string& advice) const;
  bool knows_no_cause(const std::vector<const MessageWindow*>& windows) const;
  void use_rings(const RingChoice& choice);
  std::string describe_missing_operators() const;
  void step_quietly();
  void fall_back(const Error& error);
  std::unique_ptr<Engine> make_engine(std::vector<std::unique_ptr<Reducer>> channels);

  const GroupOptions& options_;
  const StopOrder* const stop_; // may be null
  const TransportPlan plan_;
  Membership membership_;
  Rendezvous rendezvous_;
  NodeFormation nodes_;
  std::vector<std::bitset<kMostOperators>> granted_; // by channel: what its switches have
  std::vector<std::size_t> channels_;                // that carry calls
  std::optional<std::uint32_t> taken_ring_;          // of the group before: another job has it
};

/// One rank has nobody to meet, and listens nowhere.
Rendezvous GroupFormation::meeting(MeetingPlace place) const {
  RendezvousPlan plan = rendezvous_plan(options_);
  plan.stop = stop_;
  return plan.world == 1 ? Rendezvous(plan, std::vector<std::unique_ptr<FramedStream>>(1))
                         : Rendezvous(plan, std::move(place));
}

void GroupFormation::watch_frames() {
  membership_.waiter = std::make_unique<EventWaiter>();
  membership_.bell = std::make_unique<Bell>();
  if (const int frames = membership_.transport->descriptor(); frames != kNoDescriptor) {
    membership_.waiter->watch(frames, EventWaiter::Source::transport);
  }
}

/// Later than that of the groups before, as far as this rank knows them.
std::uint32_t GroupFormation::least_epoch() const {
  constexpr std::uint32_t last = UINT32_MAX;
  return membership_.history ? std::min(membership_.history->epoch, last - 1) + 1 : 0;
}

Error GroupFormation::too_early(std::uint32_t epoch) const {
  const std::uint32_t had = membership_.history->epoch;
  const std::string text =
      had == UINT32_MAX
          ? fmt::format("epoch: the ranks have had {}, the last there is; allowed: to form a new "
                        "group",
                        had)
          : fmt::format("epoch: found {}; allowed: 0, or more than {}, which the ranks have had",
                        epoch, had);
  return {ErrorCode::mismatch, std::nullopt, text};
}

Incarnation GroupFormation::suggestion() const {
  if (options_.epoch != 0) {
    return {options_.epoch, draw_nonce()};
  }
  const std::uint32_t drawn = options_.rank == 0 ? draw_epoch() : 0;
  return {std::max(drawn, least_epoch()), draw_nonce()};
}

/// The latest epoch: a rank may know of a group that was not formed in the end.
Incarnation GroupFormation::agreed(const std::vector<Introduction>& introductions) {
  Incarnation incarnation = introductions[0].incarnation;
  for (const Introduction& introduction : introductions) {
    incarnation.epoch = std::max(incarnation.epoch, introduction.incarnation.epoch);
  }
  if (membership_.history && incarnation.epoch <= membership_.history->epoch) {
    rendezvous_.abandon(too_early(incarnation.epoch));
  }
  return incarnation;
}

Membership GroupFormation::form() {
  if (options_.world == 1) {
    go_alone();
  } else {
    meet();
  }
  membership_.control = std::make_unique<JobControl>(
      options_.rank, options_.world,
      Patience{options_.timeout, options_.lateness, options_.farewell}, rendezvous_.release());
  for (const int connection : membership_.control->connections()) {
    membership_.waiter->watch(connection, EventWaiter::Source::control);
  }
  membership_.engine->attach(*membership_.control);
  return std::move(membership_);
}

void GroupFormation::go_alone() {
  membership_.incarnation = agreed({Introduction{.incarnation = suggestion()}});
  if (!membership_.history) {
    membership_.history = std::make_shared<GroupHistory>();
    membership_.history->self = {options_.rank, options_.world};
  }
  membership_.history->epoch = membership_.incarnation.epoch;
  membership_.algorithm = Algorithm::alone;
  membership_.nodes = NodeMap(std::vector<Resident>(1));
  membership_.rings = rings_without_maker(options_);
  std::vector<std::unique_ptr<Reducer>> channels;
  channels.push_back(std::make_unique<LoneReducer>());
  membership_.engine = make_engine(std::move(channels));
}

void GroupFormation::meet() {
  const Introduction own{suggestion(), ring_source(), residence_with(options_.nic),
                         membership_.transport->address()};
  const auto blobs = rendezvous_.gather(introduce(options_, own), "its introduction");
  const auto introductions = agree(options_, blobs);
  nodes_.find(introductions);
  leave_taken_ring(introductions);
  claim_rings(introductions);
  membership_.incarnation = agreed(introductions);
  if (!membership_.history) {
    membership_.callers_turned_away = rendezvous_.callers_turned_away();
    membership_.history = begin_history(rendezvous_, rendezvous_plan(options_));
  }
  membership_.history->epoch = membership_.incarnation.epoch;
  membership_.waiter->turn_callers_away(membership_.history->listener);
  if (nodes_.is_all()) {
    membership_.algorithm = Algorithm::local;
    membership_.rings = rings_without_maker(options_);
    channels_ = {0};
  } else {
    reach_other_nodes(introductions);
  }
  share_nodes();
}

void GroupFormation::reach_other_nodes(const std::vector<Introduction>& introductions) {
  if (const std::optional<Error> refusal = agree_on_rings(introductions)) {
    fall_back(*refusal);
    return;
  }
  std::vector<Blob> addresses;
  for (const Introduction& introduction : introductions) {
    addresses.push_back(introduction.address);
  }
  connect(addresses);
  greet();
}

/// The last step before calls. Of a rank that does not lead, the engine has no other channels.
void GroupFormation::share_nodes() {
  auto channels = nodes_.share(channels_);
  if (!channels.empty()) {
    membership_.engine = make_engine(std::move(channels));
  }
}

RingSource GroupFormation::ring_source() const {
  const SwitchAccess access = switch_access_of(options_);
  const bool makes_rings =
      options_.rank == 0 && !(access.address->empty() && access.manager.empty());
  return makes_rings ? RingSource::made_now : RingSource::configuration;
}

/// All ranks hear it from one that was told. To say hello there would end the other job in turn.
void GroupFormation::leave_taken_ring(const std::vector<Introduction>& introductions) {
  const bool says_hello =
      !nodes_.is_all() && introductions[0].ring_source == RingSource::configuration;
  if (!says_hello || !taken_ring_ ||
      !std::ranges::count(rings_without_maker(options_), *taken_ring_)) {
    return;
  }
  rendezvous_.abandon(Error(
      ErrorCode::mismatch, std::nullopt,
      fmt::format("shrink: ring {}: found the ring on which another job has begun, which a new "
                  "group would end in turn; allowed: options with other rings, or a switch that "
                  "makes them (switch_address)",
                  *taken_ring_)));
}

/// Rings that a switch makes are this group's alone. Leaders have rings, if there are several.
void GroupFormation::claim_rings(const std::vector<Introduction>& introductions) {
  const bool has_rings = nodes_.leads() && !nodes_.is_all();
  if (!has_rings || introductions[0].ring_source != RingSource::configuration) {
    return;
  }
  const wire::IpAddress own = ip_of(introductions[options_.rank].address, options_.rank);
  try {
    const RingHolder holder{introductions[0].incarnation.nonce, options_.rank};
    membership_.ring_claim =
        std::make_unique<RingClaim>(own, holder, rings_without_maker(options_));
  } catch (const Error& error) {
    rendezvous_.abandon(error);
  }
}

/// On rank 0. The rings must be there before the first hello. The switch may take its time, and the
/// forming may end meanwhile.
AllocatedRings GroupFormation::make_rings(const std::vector<Introduction>& introductions) {
  std::optional<Error> end;
  const auto has_ended = [&] {
    try {
      rendezvous_.look_at_others();
    } catch (const Error& error) {
      end = error;
    }
    return end.has_value();
  };
  AllocatedRings made = hold_rings(introductions, has_ended);
  if (end) {
    throw Error(*end);
  }
  return made;
}

AllocatedRings GroupFormation::hold_rings(const std::vector<Introduction>& introductions,
                                          const std::function<bool()>& has_ended) {
  try {
    std::vector<std::string> members;
    for (std::uint16_t node = 0; node < membership_.nodes.nodes(); ++node) {
      const std::uint16_t leader = membership_.nodes.leader_of(node);
      members.push_back(wire::to_string(ip_of(introductions[leader].address, leader)));
    }
    membership_.held_rings = std::make_unique<HeldRings>(
        switch_access_of(options_), options_, members, membership_.incarnation.nonce, has_ended);
    return MadeRings{membership_.held_rings->ids(), membership_.held_rings->shortage()};
  } catch (const Error& error) {
    return error;
  }
}

/// Every rank learns the rings' ids, or why there are none.
std::optional<Error>
GroupFormation::agree_on_rings(const std::vector<Introduction>& introductions) {
  membership_.rings = rings_without_maker(options_);
  if (introductions[0].ring_source == RingSource::configuration) {
    return std::nullopt;
  }
  const Blob mine = options_.rank == 0 ? encode(make_rings(introductions)) : Blob();
  const std::size_t most = options_.rings.size();
  const RingCount count{options_.ring_ids == RingIds::offered ? 1 : most, most};
  AllocatedRings told =
      decode_allocated_rings(rendezvous_.gather(mine, "the rings' ids")[0], count, options_.world);
  if (const auto* const refusal = std::get_if<Error>(&told)) {
    return *refusal;
  }
  auto& made = std::get<MadeRings>(told);
  if (!made.shortage.empty() && options_.missing_rings == MissingRings::refuse) {
    return Error(ErrorCode::not_aggregated, std::nullopt, made.shortage);
  }
  membership_.rings = std::move(made.ids);
  membership_.missing_rings = std::move(made.shortage);
  return std::nullopt;
}

/// `addresses` by rank. Of the queue pairs for rings that may be offered, those for rings that are
/// not are closed.
void GroupFormation::connect(const std::vector<Blob>& addresses) {
  const std::uint16_t behind = nodes_.predecessor();
  const std::uint16_t ahead = nodes_.successor();
  membership_.transport->connect({behind, addresses[behind]}, {ahead, addresses[ahead]});
  for (std::size_t spare = membership_.rings.size(); spare < options_.rings.size(); ++spare) {
    membership_.transport->close(spare);
  }
  rendezvous_.gather({}, "that it is connected"); // no rank sends before its successor is connected
}

WindowConfig GroupFormation::window_config(std::size_t channel) const {
  return {.ring = membership_.rings[channel],
          .rank = nodes_.node(),
          .world = membership_.nodes.nodes(),
          .window = options_.window,
          .message_bytes = options_.message_bytes,
          .epoch = membership_.incarnation.epoch,
          .nonce = membership_.incarnation.nonce,
          .qp = membership_.transport->queue_pair(channel),
          .ack_timeout = plan_.ack_timeout_exponent(),
          .operators = operators_for_switch()};
}

/// What the hello names. Ranks that share a NIC send one sum of theirs, which a switch could not
/// fold in the order of ranks: then no switch folds by operators.
wire::OperatorTable GroupFormation::operators_for_switch() const {
  wire::OperatorTable table;
  if (membership_.nodes.nodes() != options_.world) {
    return table;
  }
  for (const auto& one : options_.operators) {
    table.add(one->digest());
  }
  return table;
}

/// Every rank learns every rank's outcome, so that all ranks decide alike. Who does not lead has
/// none to tell.
void GroupFormation::greet() {
  const HelloOutcomes own =
      nodes_.leads() ? greet_for_node() : HelloOutcomes(membership_.rings.size());
  // A neighbour may still lack the acknowledgement of its hello.
  const auto blobs =
      rendezvous_.gather(encode(own), "what became of its hello", [this] { step_quietly(); });
  std::vector<HelloOutcomes> outcomes;
  for (std::uint16_t rank = 0; rank < options_.world; ++rank) {
    outcomes.push_back(
        decode_hello_outcomes(blobs[rank], membership_.rings.size(), {rank, options_.world}));
  }
  use_rings(choose_rings(outcomes));
}

/// Sends a hello on every channel.
HelloOutcomes GroupFormation::greet_for_node() {
  std::vector<std::unique_ptr<Reducer>> channels;
  std::vector<const MessageWindow*> windows;
  for (std::size_t index = 0; index < membership_.rings.size(); ++index) {
    auto channel = std::make_unique<SwitchReducer>(window_config(index));
    windows.push_back(&channel->window());
    channels.push_back(nodes_.around(std::move(channel)));
  }
  membership_.engine = make_engine(std::move(channels));
  return exchange_hellos(windows);
}

/// Those that all ranks have an answer of. No call has begun yet, so none moves to another ring.
void GroupFormation::use_rings(const RingChoice& choice) {
  const bool may_leave_out = options_.missing_rings == MissingRings::leave_out;
  if (choice.kept.empty() || !(choice.missing.empty() || may_leave_out)) {
    fall_back(shortage(choice, membership_.rings));
    return;
  }
  channels_ = choice.kept;
  if (nodes_.leads()) {
    membership_.engine->keep(choice.kept);
  }
  membership_.has_asked_for_operators = !operators_for_switch().entries().empty();
  membership_.operators_of_switch.set();
  for (const std::size_t channel : choice.kept) {
    membership_.used_rings.push_back(membership_.rings[channel]);
    membership_.operators_of_switch &=
        nodes_.leads() ? granted_[channel] : std::bitset<kMostOperators>();
  }
  if (std::string missing = describe_missing(choice, membership_.rings); !missing.empty()) {
    membership_.missing_rings = std::move(missing);
  }
  membership_.missing_operators = describe_missing_operators();
}

/// One sentence for each that is not folded in the network.
std::string GroupFormation::describe_missing_operators() const {
  std::string text;
  for (std::size_t number = 0; number < options_.operators.size(); ++number) {
    if (membership_.fold_of_operator(number) == OperatorFold::refused) {
      text += (text.empty() ? "" : "; ") + describe_refused(number, *options_.operators[number]);
    }
  }
  return text;
}

std::unique_ptr<Engine>
GroupFormation::make_engine(std::vector<std::unique_ptr<Reducer>> channels) {
  return std::make_unique<Engine>(Place{options_.rank, options_.world}, std::move(channels),
                                  *membership_.transport, options_.timeout);
}

/// An error of the device is one of every ring.
HelloOutcomes GroupFormation::exchange_hellos(const std::vector<const MessageWindow*>& windows) {
  if (const std::optional<Error> error = await_answers()) {
    return HelloOutcomes(windows.size(), *error);
  }
  const bool needs_advice = knows_no_cause(windows);
  HelloOutcomes outcomes;
  for (std::size_t channel = 0; channel < windows.size(); ++channel) {
    const MessageWindow& window = *windows[channel];
    outcomes.push_back(
        outcome_of(channel, window, needs_advice ? window.explain_silence() : std::string()));
    granted_.push_back(window.operators());
  }
  return outcomes;
}

/// The device's error. Throws when another rank has failed or is gone: its hello may never come.
std::optional<Error> GroupFormation::await_answers() {
  StallTimer timer(hello_patience(options_), Clock::now());
  do {
    try {
      membership_.progress(Clock::now() + StallTimer::kLookPeriod);
    } catch (const Error& error) {
      return error;
    }
    rendezvous_.look_at_others();
    timer.look(Clock::now());
  } while (!membership_.engine->hellos_are_over() && !timer.is_over());
  return std::nullopt;
}

std::optional<Error> GroupFormation::outcome_of(std::size_t channel, const MessageWindow& window,
                                                const std::string& advice) const {
  if (const std::optional<Error>& failure = membership_.engine->failure(channel)) {
    return with_advice(*failure, advice);
  }
  if (window.state() == MessageWindow::State::greeting) {
    return silence_of(channel, window, advice);
  }
  if (window.answer() == MessageWindow::Answer::plain) {
    return Error(ErrorCode::not_aggregated, std::nullopt, window.explain_plain());
  }
  return std::nullopt;
}

Error GroupFormation::silence_of(std::size_t channel, const MessageWindow& window,
                                 const std::string& advice) const {
  const std::chrono::milliseconds waited = hello_patience(options_);
  if (membership_.rings.size() == 1) {
    return membership_.engine->silence(channel, waited, advice);
  }
  if (window.answer() == MessageWindow::Answer::none) {
    return with_advice({ErrorCode::timeout, std::nullopt,
                        fmt::format("rank {} got no answer to its hello within {} ms",
                                    options_.rank, waited.count())},
                       advice);
  }
  return with_advice({ErrorCode::retry_exceeded, nodes_.successor(),
                      fmt::format("rank {} has not acknowledged the hello of rank {} within {} ms",
                                  nodes_.successor(), options_.rank, waited.count())},
                     advice);
}

/// Of a ring of the configuration only the switch knows why it is silent. If another ring of the
/// group has answered, it may as well be gone.
bool GroupFormation::knows_no_cause(const std::vector<const MessageWindow*>& windows) const {
  const auto is_silent = [](const MessageWindow* window) {
    return window->answer() == MessageWindow::Answer::none;
  };
  return membership_.ring_claim && std::ranges::all_of(windows, is_silent);
}

/// Steps for peers that need an acknowledgement. Errors are ignored: our own outcome is known.
void GroupFormation::step_quietly() {
  if (!nodes_.leads()) {
    return;
  }
  try {
    membership_.progress(Deadline::min());
  } catch (const Error&) {
  }
}

/// Reduces on the hosts, or throws the error if that is not allowed or no help. Makes new queue
/// pairs: a switch may have admitted the old ones to a ring.
void GroupFormation::fall_back(const Error& error) {
  const char* const requires_rings = std::getenv("WEIR_REQUIRE");
  const bool may_fall_back = requires_rings == nullptr || std::string_view(requires_rings) != "1";
  if (!hosts_may_reduce(error.code()) || options_.fallback != Fallback::ring || !may_fall_back) {
    throw error;
  }
  membership_.algorithm = Algorithm::ring;
  membership_.fallback_reason = error.what();
  membership_.held_rings.reset();
  membership_.give_up_rings();
  membership_.transport->renew(Delivery::by_write);
  connect(rendezvous_.gather(membership_.transport->address(), "its new address"));
  channels_.resize(membership_.rings.size());
  std::iota(channels_.begin(), channels_.end(), 0);
  nodes_.begin_anew();
  if (!nodes_.leads()) {
    return;
  }
  std::vector<std::unique_ptr<Reducer>> channels;
  for (std::size_t channel = 0; channel < membership_.rings.size(); ++channel) {
    const WindowConfig window = window_config(channel);
    channels.push_back(nodes_.around(
        std::make_unique<RingCollectives>(RingReducerConfig{.ring = window.ring,
                                                            .rank = window.rank,
                                                            .world = window.world,
                                                            .epoch = window.epoch,
                                                            .slots = plan_.slots,
                                                            .data_bytes = window.data_bytes()})));
  }
  membership_.engine = make_engine(std::move(channels));
}

} // namespace

RendezvousPlan rendezvous_plan(const GroupOptions& options) {
  const bool has_keep_alive = options.keep_alive.count() != 0;
  return {.rank = options.rank,
          .world = options.world,
          .address = options.rendezvous,
          .timeout = options.form_timeout,
          .credentials = {options.job, options.secret},
          .all_gather = options.all_gather,
          .preferred_ip = options.ip,
          .keep_alive = has_keep_alive ? options.keep_alive : options.timeout,
          .listener = options.listener,
          .handle = options.handle};
}

Membership form_group(const GroupOptions& options, std::unique_ptr<Transport> transport,
                      MeetingPlace place, const StopOrder* stop) {
  return GroupFormation(options, std::move(transport), std::move(place), stop).form();
}

Membership form_group(const GroupOptions& options, std::unique_ptr<Transport> transport,
                      Successors successors) {
  return GroupFormation(options, std::move(transport), std::move(successors)).form();
}

} // namespace weir::host
