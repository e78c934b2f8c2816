// SPDX-License-Identifier: BSD-3-Clause
#include "weir/communicator.hpp"

#include "host/bootstrap/agreement.hpp"
#include "host/bootstrap/control_note.hpp"
#include "host/bootstrap/fork_watch.hpp"
#include "host/collective/engine.hpp"
#include "host/collective/ring_reducer.hpp"
#include "host/collective/switch_reducer.hpp"
#include "host/transport/packet_socket.hpp"
#include "host/transport/software_transport.hpp"
#include "host/transport/verbs_transport.hpp"
#include "weir/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <new>
#include <random>
#include <set>
#include <thread>

namespace weir {
namespace {

constexpr double kMaxLoss = 0.9;
constexpr std::uint64_t kMaxPackets = std::uint64_t{1} << 22;  // 2N x L: half of what has an order
constexpr std::chrono::milliseconds kMaxAckTimeout{8'796'093}; // 4.096 us x 2^31, IBTA's longest
constexpr std::chrono::milliseconds kShortAckTimeout{67};      // 4.096 us x 2^14
constexpr std::size_t kMaxTensorBytes = PTRDIFF_MAX;
constexpr std::uint32_t kRingSlotsPerRank = 8;
constexpr auto kIdlePeriod = std::chrono::milliseconds(1); // how long a peer waits for an ACK
constexpr auto kShortWait = std::chrono::microseconds(200);
constexpr auto kLongWait = std::chrono::milliseconds(100); // for a waiting caller that is notified

/// Wall-clock seconds. A job that is restarted has a larger epoch, also after a reboot.
std::uint32_t draw_epoch() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count());
}

/// Random, not 0. Runs that start in the same second differ.
std::uint32_t draw_nonce() {
  std::random_device entropy;
  return std::uniform_int_distribution<std::uint32_t>(1, UINT32_MAX)(entropy);
}

/// 2N, or more where host::RingReducer needs it: two blocks of each rank under way.
std::uint32_t slots_of(const CommunicatorOptions& options) {
  const std::uint32_t ring = options.fallback == Fallback::ring ? kRingSlotsPerRank : 0;
  return std::max(2 * options.window, ring * options.world);
}

/// With the default, no rank that is late by less than `timeout` ends the job. The software queue
/// pair retries without limit; an HCA gives up after eight tries.
std::chrono::milliseconds ack_timeout_of(const CommunicatorOptions& options) {
  if (options.ack_timeout.count() != 0) {
    return options.ack_timeout;
  }
  constexpr int kTries = host::kMostRetries + 1;
  const auto share = std::clamp(options.timeout / kTries, kShortAckTimeout, kMaxAckTimeout);
  return options.transport == TransportKind::verbs ? share : kShortAckTimeout;
}

host::TransportPlan transport_plan(const CommunicatorOptions& options) {
  return {.rank = options.rank,
          .world = options.world,
          .lanes = options.rings.size(),
          .slots = slots_of(options),
          .slot_bytes = options.message_bytes,
          .path_mtu = options.path_mtu,
          .window = options.window,
          .ack_timeout = ack_timeout_of(options),
          .retry_count = options.retry_count};
}

std::unique_ptr<host::Transport> software_transport(const CommunicatorOptions& options,
                                                    std::unique_ptr<host::FrameIo> frames) {
  const wire::MacAddress mac = options.mac.empty() ? frames->mac() : *wire::parse_mac(options.mac);
  const host::SoftwareTransportOptions software{
      .ip = *wire::parse_ip(options.ip), .mac = mac, .loss = options.loss, .seed = options.seed};
  return std::make_unique<host::SoftwareTransport>(transport_plan(options), software,
                                                   std::move(frames));
}

/// The outcome of the hellos for the whole job, the same on every rank. The first error that a
/// fallback cannot mend; else that nobody aggregates; else none.
std::optional<Error> worst_of(const std::vector<host::Blob>& outcomes) {
  std::optional<Error> worst;
  for (const host::Blob& outcome : outcomes) {
    if (outcome.empty()) {
      continue;
    }
    const Error error = host::decode_error(outcome);
    if (!worst || worst->code() == ErrorCode::not_aggregated) {
      worst = error;
    }
  }
  return worst;
}

std::unique_ptr<host::Transport> open_transport(const CommunicatorOptions& options) {
  if (options.transport == TransportKind::verbs) {
    return host::open_verbs(transport_plan(options),
                            {.device = options.device, .gid_index = options.gid_index});
  }
  return software_transport(options, std::make_unique<host::PacketSocket>(options.device));
}

std::uint64_t packets_under_way(const CommunicatorOptions& options) {
  const std::uint32_t mtu = options.path_mtu;
  return std::uint64_t{slots_of(options)} * ((options.message_bytes + mtu - 1) / mtu);
}

void check(const CommunicatorOptions& options) {
  const std::string defect = find_defect(options);
  if (!defect.empty()) {
    throw std::invalid_argument(defect);
  }
}

} // namespace

std::string find_defect(const CommunicatorOptions& options) {
  const auto found = [](std::string_view option, auto value, std::string_view allowed) {
    return fmt::format("{}: found {}; allowed: {}", option, value, allowed);
  };
  if (options.world < kMinWorld || options.world > kMaxWorld) {
    return found("world", options.world, "2 .. 256");
  }
  if (options.rank >= options.world) {
    return found("rank", options.rank, fmt::format("0 .. {}", options.world - 1));
  }
  const std::set<std::uint32_t> distinct(options.rings.begin(), options.rings.end());
  if (options.rings.empty() || distinct.size() != options.rings.size()) {
    return found("rings", fmt::format("{}", fmt::join(options.rings, ",")), "distinct ids");
  }
  if (!host::Endpoint::parse(options.rendezvous)) {
    return found("rendezvous", fmt::format("'{}'", options.rendezvous), "HOST:PORT");
  }
  if (options.window < 1 || options.window > kMaxWindow) {
    return found("window", options.window, fmt::format("1 .. {}", kMaxWindow));
  }
  const std::uint32_t mtu = options.path_mtu;
  if (std::ranges::find(kPathMtus, mtu) == kPathMtus.end()) {
    return found("path_mtu", mtu, fmt::format("one of {}", fmt::join(kPathMtus, ", ")));
  }
  if (options.message_bytes < kInaHeaderBytes + 8 || options.message_bytes > kMaxMessageBytes) {
    return found("message_bytes", options.message_bytes,
                 fmt::format("{} .. {}", kInaHeaderBytes + 8, kMaxMessageBytes));
  }
  if (const std::uint64_t packets = packets_under_way(options); packets > kMaxPackets) {
    return found("window", options.window,
                 fmt::format("as many messages as make {} packets in {} slots; these make {}",
                             kMaxPackets, slots_of(options), packets));
  }
  if (options.timeout.count() <= 0) {
    return found("timeout", fmt::format("{} ms", options.timeout.count()), "more than 0");
  }
  if (options.ack_timeout.count() < 0 || options.ack_timeout > kMaxAckTimeout) {
    return found("ack_timeout", fmt::format("{} ms", options.ack_timeout.count()),
                 fmt::format("0 .. {}", kMaxAckTimeout.count()));
  }
  if (options.retry_count > 7) {
    return found("retry_count", options.retry_count, "0 .. 7");
  }
  if (!(options.loss >= 0 && options.loss <= kMaxLoss)) {
    return found("loss", options.loss, "0 .. 0.9");
  }
  if (options.transport == TransportKind::software && !wire::parse_ip(options.ip)) {
    return found("ip", fmt::format("'{}'", options.ip), "an IPv4 or IPv6 address");
  }
  if (!options.mac.empty() && !wire::parse_mac(options.mac)) {
    return found("mac", fmt::format("'{}'", options.mac), "six hexadecimal bytes with colons");
  }
  return {};
}

class Pending::State {
 public:
  std::shared_ptr<Communicator::Driver> driver;
  host::Job job;
};

/// Owns the job's parts and decides which thread drives the engine: a caller that waits, or else
/// its own thread. Its own thread spins while a job runs, and else polls every millisecond. The
/// driving thread does not hold the lock during a step, so nobody waits longer than one step.
class Communicator::Driver {
 public:
  Driver(const CommunicatorOptions& options, std::unique_ptr<host::Transport> transport)
      : options_(options), transport_(std::move(transport)) {
    meet();
    thread_ = std::thread([this] { attend(); });
  }

  ~Driver() = default;

  /// False in a child made by fork, where only is_here may be called.
  bool is_here() const { return birthplace_.is_here(); }

  /// Call it before the last reference goes away: the jobs' states hold references.
  void close();
  static void keep_for_ever(std::shared_ptr<Driver> driver);

  std::shared_ptr<Pending::State> start(const void* in, void* out, host::Call call,
                                        std::shared_ptr<Driver> self);
  bool test(const Pending::State& state);
  bool wait_until(const Pending::State& state, host::Deadline deadline);

  const CommunicatorOptions& options() const { return options_; }

  std::uint32_t epoch() const { return incarnation_.epoch; }

  Algorithm algorithm() const { return algorithm_; }

  const std::string& fallback_reason() const { return fallback_reason_; }

  CommunicatorStatistics statistics();

 private:
  using Lock = std::unique_lock<std::mutex>;

  void meet();
  void connect(host::Rendezvous& rendezvous, const host::Blob& predecessor,
               const host::Blob& successor);
  host::WindowConfig window_config(std::size_t lane) const;
  void greet(host::Rendezvous& rendezvous);
  std::optional<Error> exchange_hellos(const std::vector<const host::MessageWindow*>& windows);
  void step_quietly();
  void fall_back(host::Rendezvous& rendezvous, std::string_view reason);
  void attend();
  static void give_way(Lock& lock);

  bool may_step() const { return !is_stepping_ && visitors_ == 0 && !failure_ && !closing_; }

  bool step(Lock& lock, std::chrono::microseconds timeout);
  void settle(const std::optional<Error>& error);
  void start_next();

  bool is_over(const Pending::State& state) const { return state.job.done || failure_.has_value(); }

  bool outcome_of(const Pending::State& state) const;
  void fail(const Error& error);
  void throw_if_failed() const;
  void refuse_elsewhere() const;
  void say_farewell();

  const CommunicatorOptions options_;
  const host::Birthplace birthplace_;
  host::Incarnation incarnation_;
  Algorithm algorithm_ = Algorithm::in_switch;
  std::string fallback_reason_;
  std::unique_ptr<host::Transport> transport_;
  std::unique_ptr<host::JobControl> control_;
  std::unique_ptr<host::Engine> engine_;

  std::mutex mutex_; // guards all below; also the engine, except during a step
  bool is_stepping_ = false;
  unsigned visitors_ = 0;                            // callers that wait for the engine to pause
  unsigned waiters_ = 0;                             // callers that drive the engine themselves
  std::deque<std::shared_ptr<Pending::State>> jobs_; // the engine works on the front one
  std::uint64_t calls_ = 0;
  std::optional<Error> failure_;
  bool closing_ = false;
  std::condition_variable wake_;    // wakes the own thread
  std::condition_variable changed_; // wakes callers: something is done, or the engine is free
  std::thread thread_;
};

/// Rendezvous, connections, hello.
void Communicator::Driver::meet() {
  host::Rendezvous rendezvous(
      {options_.rank, options_.world, options_.rendezvous, options_.timeout});
  const host::Incarnation own{options_.epoch != 0 ? options_.epoch : draw_epoch(), draw_nonce()};
  const auto blobs = rendezvous.gather(host::introduce(options_, own, transport_->address()));
  const auto introductions = host::agree(options_, blobs);
  incarnation_ = introductions[0].incarnation;
  const host::TransportPlan plan = transport_plan(options_);
  connect(rendezvous, introductions[plan.predecessor()].address,
          introductions[plan.successor()].address);
  greet(rendezvous);
  control_ = std::make_unique<host::JobControl>(options_.rank, options_.world, options_.timeout,
                                                rendezvous.release());
  engine_->attach(*control_);
}

void Communicator::Driver::connect(host::Rendezvous& rendezvous, const host::Blob& predecessor,
                                   const host::Blob& successor) {
  transport_->connect(predecessor, successor);
  rendezvous.gather({}); // nobody sends before its successor can receive
}

host::WindowConfig Communicator::Driver::window_config(std::size_t lane) const {
  return {.ring = options_.rings[lane],
          .rank = options_.rank,
          .world = options_.world,
          .window = options_.window,
          .message_bytes = options_.message_bytes,
          .epoch = incarnation_.epoch,
          .nonce = incarnation_.nonce,
          .qp = transport_->queue_pair(lane),
          .ack_timeout = transport_plan(options_).ack_timeout_exponent()};
}

/// Sends a hello on every lane. Every rank learns every rank's outcome, so all decide alike.
void Communicator::Driver::greet(host::Rendezvous& rendezvous) {
  std::vector<std::unique_ptr<host::Reducer>> lanes;
  std::vector<const host::MessageWindow*> windows;
  for (std::size_t index = 0; index < options_.rings.size(); ++index) {
    auto lane = std::make_unique<host::SwitchReducer>(window_config(index));
    windows.push_back(&lane->window());
    lanes.push_back(std::move(lane));
  }
  engine_ = std::make_unique<host::Engine>(std::move(lanes), *transport_, options_.timeout);
  const std::optional<Error> outcome = exchange_hellos(windows);
  const host::Blob blob = outcome ? host::encode(*outcome) : host::Blob();
  // A neighbour may still lack the acknowledgement of its hello.
  const auto outcomes = rendezvous.gather(blob, [this] { step_quietly(); });
  const std::optional<Error> worst = worst_of(outcomes);
  if (!worst) {
    return;
  }
  if (worst->code() != ErrorCode::not_aggregated || options_.fallback != Fallback::ring) {
    throw *worst;
  }
  fall_back(rendezvous, worst->what());
}

/// The error in the answers. None when the switch aggregates every ring.
std::optional<Error>
Communicator::Driver::exchange_hellos(const std::vector<const host::MessageWindow*>& windows) {
  try {
    while (!engine_->lanes_are_idle()) {
      if (!engine_->step()) {
        transport_->wait(kShortWait);
      }
    }
  } catch (const Error& error) {
    return error;
  }
  for (const host::MessageWindow* window : windows) {
    if (window->answer() != host::MessageWindow::Answer::aggregated) {
      return Error(ErrorCode::not_aggregated, std::nullopt, window->explain_plain());
    }
  }
  return std::nullopt;
}

/// Steps for peers that need an acknowledgement. Errors are ignored: our own outcome is known.
void Communicator::Driver::step_quietly() {
  try {
    engine_->step();
  } catch (const Error&) {
  }
}

/// Makes new queue pairs: a switch may have admitted the old ones to a ring.
void Communicator::Driver::fall_back(host::Rendezvous& rendezvous, std::string_view reason) {
  algorithm_ = Algorithm::ring;
  fallback_reason_ = reason;
  const host::TransportPlan plan = transport_plan(options_);
  transport_->renew();
  const std::vector<host::Blob> addresses = rendezvous.gather(transport_->address());
  connect(rendezvous, addresses[plan.predecessor()], addresses[plan.successor()]);
  std::vector<std::unique_ptr<host::Reducer>> lanes;
  for (std::size_t lane = 0; lane < options_.rings.size(); ++lane) {
    const host::WindowConfig window = window_config(lane);
    lanes.push_back(
        std::make_unique<host::RingReducer>(host::RingConfig{.ring = window.ring,
                                                             .rank = options_.rank,
                                                             .world = options_.world,
                                                             .epoch = window.epoch,
                                                             .slots = slots_of(options_),
                                                             .data_bytes = window.data_bytes()}));
  }
  engine_->replace(std::move(lanes));
}

std::shared_ptr<Pending::State> Communicator::Driver::start(const void* in, void* out,
                                                            host::Call call,
                                                            std::shared_ptr<Driver> self) {
  auto state = std::make_shared<Pending::State>();
  state->driver = std::move(self);
  state->job.in = static_cast<const std::uint8_t*>(in);
  state->job.out = static_cast<std::uint8_t*>(out);
  refuse_elsewhere();
  const Lock lock(mutex_);
  throw_if_failed();
  call.sequence = ++calls_;
  state->job.call = call;
  jobs_.push_back(state);
  if (!is_stepping_) {
    start_next();
    throw_if_failed();
  }
  wake_.notify_one();
  return state;
}

/// In a child made by fork the mutex may stay locked for ever, and the connections are the
/// parent's.
void Communicator::Driver::refuse_elsewhere() const {
  if (!is_here()) {
    throw Error(ErrorCode::transport_failure, options_.rank,
                fmt::format("rank {}: this process was made by a fork of the communicator's own; "
                            "only that one may use it",
                            options_.rank));
  }
}

void Communicator::Driver::throw_if_failed() const {
  if (failure_) {
    throw *failure_;
  }
}

/// Starts the next job. Another rank's message may end the job here.
void Communicator::Driver::start_next() {
  if (jobs_.empty() || engine_->is_reducing()) {
    return;
  }
  try {
    engine_->start(jobs_.front()->job);
  } catch (const Error& error) {
    fail(error);
  }
}

/// Makes one step without the lock; takes the lock again afterwards. Only for a caller that has
/// checked may_step(). With no work, waits up to `timeout`. True when the step did anything.
bool Communicator::Driver::step(Lock& lock, std::chrono::microseconds timeout) {
  is_stepping_ = true;
  lock.unlock();
  bool moved = false;
  std::optional<Error> error;
  try {
    moved = engine_->step();
    if (!moved && timeout.count() != 0) {
      transport_->wait(timeout);
    }
  } catch (const Error& caught) {
    error = caught;
  } catch (const std::exception& caught) { // out of memory, or thrown by a caller's FrameIo
    error = Error(ErrorCode::transport_failure, options_.rank, caught.what());
  }
  lock.lock();
  is_stepping_ = false;
  settle(error);
  return moved;
}

/// Updates the state after a step and wakes waiting threads.
void Communicator::Driver::settle(const std::optional<Error>& error) {
  const bool is_done = !jobs_.empty() && jobs_.front()->job.done;
  if (is_done) {
    jobs_.pop_front();
  }
  if (error) {
    fail(*error);
  }
  start_next();
  if (is_done || failure_ || visitors_ != 0 || closing_) {
    changed_.notify_all();
  }
}

void Communicator::Driver::fail(const Error& error) {
  failure_ = error;
  control_->report(error);
  jobs_.clear();
}

bool Communicator::Driver::test(const Pending::State& state) {
  refuse_elsewhere();
  Lock lock(mutex_);
  if (!is_over(state) && may_step()) {
    step(lock, {});
  }
  return outcome_of(state);
}

bool Communicator::Driver::wait_until(const Pending::State& state, host::Deadline deadline) {
  refuse_elsewhere();
  Lock lock(mutex_);
  ++waiters_;
  for (auto now = host::Clock::now(); !is_over(state) && now < deadline; now = host::Clock::now()) {
    if (may_step()) {
      step(lock, kShortWait);
    } else if (waiters_ == 1) {
      give_way(lock); // the own thread is driving, and stops after this step
    } else {
      changed_.wait_until(lock, std::min(deadline, now + kLongWait));
    }
  }
  --waiters_;
  changed_.notify_all(); // another thread may drive now
  if (!jobs_.empty()) {
    wake_.notify_one();
  }
  return outcome_of(state);
}

bool Communicator::Driver::outcome_of(const Pending::State& state) const {
  if (!state.job.done) {
    throw_if_failed();
  }
  return state.job.done;
}

/// For a child made by fork: it has no such thread, and the device is the parent's.
void Communicator::Driver::keep_for_ever(std::shared_ptr<Driver> driver) {
  static auto* const kept = new std::vector<std::shared_ptr<Driver>>;
  kept->push_back(std::move(driver));
}

/// Body of the own thread.
void Communicator::Driver::attend() {
  Lock lock(mutex_);
  while (!closing_) {
    if (jobs_.empty() || waiters_ != 0) {
      wake_.wait_for(lock, kIdlePeriod);
    }
    while (waiters_ == 0 && may_step() && step(lock, {})) {
    }
    if (waiters_ != 0) {
      changed_.notify_all(); // callers drive now
    } else if (!jobs_.empty()) {
      give_way(lock);
    }
  }
}

void Communicator::Driver::give_way(Lock& lock) {
  lock.unlock();
  std::this_thread::yield();
  lock.lock();
}

void Communicator::Driver::close() {
  {
    Lock lock(mutex_);
    closing_ = true;
    changed_.wait(lock, [this] { return !is_stepping_; });
    if (!jobs_.empty() && !failure_) {
      fail(Error(
          ErrorCode::peer_died, options_.rank,
          fmt::format("rank {} closed its communicator during an all-reduce", options_.rank)));
    }
    changed_.notify_all();
    wake_.notify_one();
  }
  thread_.join();
  say_farewell();
}

/// Waits until every rank has its last acknowledgement; each rank leaves when it has it. A
/// predecessor that still repeats a message needs our queue pair. Also, all ranks would stop
/// waiting if rank 0 ended.
void Communicator::Driver::say_farewell() {
  if (failure_) {
    return;
  }
  try {
    control_->leave();
    while (!control_->may_close()) {
      if (!engine_->step()) {
        transport_->wait(kShortWait);
      }
    }
  } catch (const std::exception&) { // our calls are all done, so the error is another rank's
  }
}

CommunicatorStatistics Communicator::Driver::statistics() {
  refuse_elsewhere();
  Lock lock(mutex_);
  ++visitors_;
  changed_.wait(lock, [this] { return !is_stepping_; });
  --visitors_;
  changed_.notify_all(); // the engine may go on
  const host::TransportStatistics transport = transport_->statistics();
  return {.messages_sent = engine_->messages_sent(),
          .results_received = engine_->results_received(),
          .retransmitted_packets = transport.retransmitted_packets,
          .ack_timeouts = transport.ack_timeouts,
          .frames_lost_on_purpose = transport.frames_lost_on_purpose};
}

bool Pending::test() {
  return !state_ || state_->driver->test(*state_);
}

void Pending::wait() {
  if (state_) {
    state_->driver->wait_until(*state_, host::Deadline::max());
  }
}

bool Pending::wait_for(std::chrono::milliseconds timeout) {
  return !state_ ||
         state_->driver->wait_until(*state_, host::deadline_after(host::Clock::now(), timeout));
}

std::size_t Pending::bytes_done() const {
  return state_ ? state_->job.bytes_done.load(std::memory_order_relaxed) : 0;
}

/// Even windows and messages within the protocol's limits may need more memory than there is.
template <typename Opening>
std::shared_ptr<Communicator::Driver> Communicator::open(const CommunicatorOptions& options,
                                                         Opening&& open_transport) {
  check(options);
  try {
    return std::make_shared<Driver>(options, open_transport());
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::transport_failure, options.rank,
                fmt::format("rank {}: no memory for {} x {} slots of {} bytes (rings, window, "
                            "message_bytes)",
                            options.rank, options.rings.size(), slots_of(options),
                            options.message_bytes));
  }
}

Communicator::Communicator(const CommunicatorOptions& options)
    : driver_(open(options, [&] { return open_transport(options); })) {}

Communicator::Communicator(const CommunicatorOptions& options,
                           std::unique_ptr<host::FrameIo> frames)
    : driver_(open(options, [&] { return software_transport(options, std::move(frames)); })) {}

Communicator::~Communicator() {
  if (driver_->is_here()) {
    driver_->close();
    return;
  }
  Driver::keep_for_ever(std::move(driver_));
}

Pending Communicator::start_all_reduce(const void* in, void* out, std::size_t count, DataType type,
                                       Operation operation) {
  if (!is_reducible(type, operation)) {
    throw std::invalid_argument(
        fmt::format("{} of {} has no meaning", name_of(operation), name_of(type)));
  }
  if (const std::size_t most = kMaxTensorBytes / element_size(type); count > most) {
    throw std::invalid_argument(
        fmt::format("count: found {}; allowed: 0 .. {} of {}", count, most, name_of(type)));
  }
  return Pending(
      driver_->start(in, out, {.count = count, .type = type, .operation = operation}, driver_));
}

void Communicator::all_reduce(const void* in, void* out, std::size_t count, DataType type,
                              Operation operation) {
  start_all_reduce(in, out, count, type, operation).wait();
}

std::uint16_t Communicator::rank() const {
  return driver_->options().rank;
}

std::uint16_t Communicator::world() const {
  return driver_->options().world;
}

std::uint32_t Communicator::epoch() const {
  return driver_->epoch();
}

Algorithm Communicator::algorithm() const {
  return driver_->algorithm();
}

std::string Communicator::fallback_reason() const {
  return driver_->fallback_reason();
}

CommunicatorStatistics Communicator::statistics() const {
  return driver_->statistics();
}

} // namespace weir
