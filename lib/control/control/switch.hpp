// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "capture/capture.hpp"
#include "config/config.hpp"
#include "control/gate_log.hpp"
#include "control/leases.hpp"
#include "control/memory.hpp"
#include "control/new_ports.hpp"
#include "control/numa.hpp"
#include "control/placement.hpp"
#include "control/port.hpp"
#include "control/port_plan.hpp"
#include "control/principal.hpp"
#include "control/reload.hpp"
#include "control/ring_budget.hpp"
#include "control/ring_exists.hpp"
#include "control/ring_forecast.hpp"
#include "control/ring_journal.hpp"
#include "control/tenants.hpp"
#include "lcore/lcore.hpp"
#include "ring/current.hpp"
#include "stage/snapshot.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

struct rte_mempool;

namespace weir::control {

/// The configuration needs more memory than there is. what() has both amounts.
class MemoryError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An lcore did not stop between two rounds in time.
class LcoreError : public std::runtime_error {
 public:
  LcoreError(unsigned lcore, const std::string& what) : std::runtime_error(what), lcore_(lcore) {}

  unsigned lcore() const { return lcore_; }

 private:
  unsigned lcore_;
};

/// No ring has this id. what() has the id and those that there are.
class NoSuchRing : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Rings at one moment. The set says what their indices mean.
struct RingsSeen {
  std::shared_ptr<const ring::RingSet> set;
  std::vector<stage::RingSnapshot> rings;
};

/// All rings as they are looked at.
struct TendedRings {
  std::uint64_t now_ns = 0; // of the switch's clock
  std::vector<TendedRing> rings;
};

/// Whether a ring, as it is at that moment, is to be reclaimed.
using ReclaimJudge = std::function<std::optional<Grounds>(const TendedRing&, std::uint64_t now_ns)>;

/// What holds up one ring.
struct StuckRing {
  ring::RingSpec spec;
  stage::StuckSnapshot stuck;
};

/// One lcore's state at one moment.
struct LcoreSnapshot {
  unsigned id = 0;
  std::string roles; // "rx,worker"
  int numa_node = kNoNode;
  std::size_t rings = 0;
  std::uint64_t held = 0; // frames
  frame::FrameCounters frames;
  lcore::RoundCounters rounds;
};

/// A MAC address of the MAC table.
struct Station {
  wire::MacAddress mac;
  std::uint16_t port = 0;
  std::uint64_t age_ms = 0; // since its last frame
  std::uint64_t pins = 0;   // by rings' members
};

/// A capture is asked for while another one runs. what() names that one.
class CaptureRuns : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What a capture takes, and where to.
struct CaptureOrder {
  std::string file; // must not exist
  std::string what; // "ring 1": for people
  frame::CaptureFilter filter;
  std::uint64_t count = 0; // it ends after so many packets
};

/// Number and length of the stops; nanoseconds, measured by the asking thread.
struct StopTimes {
  std::uint64_t stops = 0;
  frame::Histogram gathering; // from the first lcore that is told until the last one has stopped
  frame::Histogram standing;  // from then until they may go on
  bool kept_cpu = false;      // whether the asking thread kept its CPU the last time
};

/// The switch as the prompt and telemetry see it: ports, lcores and what they share. EAL is up
/// before it is made, with the lcores of eal_lcores(placement).
///
/// Port counters are read while the lcores run. Answers that must be consistent are copied while
/// all lcores are stopped, for some microseconds and once per question; lists of connections take
/// several stops. All other work is done after the stop. Several threads may ask questions.
class Switch {
 public:
  /// Checks memory, then probes ports. Throws MemoryError, PortError.
  explicit Switch(const config::Config& config);
  ~Switch();
  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;

  /// Where frames cross between NUMA nodes, in words. Empty where all is on one node.
  std::vector<std::string> numa_warnings() const;

  void start();
  /// First receiving ends, then frames under way leave, then frames that rings hold are released.
  /// Call it when no other thread can ask a question.
  void stop();
  /// After stop(): frees the mbufs that drivers hold. The ports' statistics are then gone.
  void close_ports();

  /// As it is in force, but for the rings. Its ports are at their places: a port's place is its
  /// number everywhere in the switch.
  std::shared_ptr<const config::Config> config() const;

  /// By place; nullptr where there is no port. A port that goes meanwhile has nothing to say.
  std::vector<std::shared_ptr<const Port>> ports() const;

  /// The rings at this moment.
  std::shared_ptr<const ring::RingSet> ring_set() const;

  /// Counts since the last clear_port_counters(). Does not stop the lcores.
  frame::PortCounters port_counters(std::uint16_t port) const;
  void clear_port_counters(std::uint16_t port);
  stage::Accounting accounting();
  /// All rings that are not withdrawn.
  RingsSeen ring_snapshots();
  /// The same, a part of the rings in each stop, for who looks again and again.
  RingsSeen ring_snapshots_in_parts();
  /// One ring. Throws NoSuchRing, as all that takes a ring's id.
  RingsSeen ring_snapshot(std::uint32_t id);
  /// At most `limit` slots.
  StuckRing stuck_slots(std::uint32_t id, std::size_t limit);
  /// Copies in parts, with a stop for each. A connection that joins or leaves a ring between two
  /// parts may appear twice or not at all.
  std::vector<stage::ConnectionSnapshot> connections();
  /// An order to a ring is carried out if `principal` may order this very ring: nobody makes,
  /// changes or withdraws a ring between the question whose it is and the order's end. Throws
  /// NotAllowed.
  void reset_ring(std::uint32_t id, const Principal& principal);
  /// Adds a ring, and takes its memory, at once. The lcores stop once, for as long as for a
  /// question. Throws RingExists, RingRefused and JournalError; nothing has changed then.
  ring::RingBirth add_ring(const ring::RingSpec& spec);
  /// Gives back the ring's id, its memory and its places. Nobody adds up for its hosts any more,
  /// and none of their raw data passes (docs/protocol.md §2a). The lcores stop several times, each
  /// time for as long as for a question.
  void withdraw_ring(std::uint32_t id, const Principal& principal);
  /// As add_ring(), but silence does not end the ring: its owner does.
  ring::RingBirth hold_ring(const ring::RingSpec& spec);
  /// Reclaims a ring whose owner has gone, unless it was withdrawn already.
  void reclaim_orphan(ring::RingBirth birth);
  /// False: it was withdrawn.
  bool has_ring_born(ring::RingBirth birth);
  /// Refuses hellos that would begin a new incarnation, and gives up those that wait. The running
  /// incarnation goes on. The ring is to be withdrawn when all members have been silent for `quiet`
  /// since then. A second time, only `quiet` is new.
  void drain_ring(std::uint32_t id, std::chrono::seconds quiet, const Principal& principal);
  /// The same for all rings, before the switch stops. They are not withdrawn, and no ring can be
  /// added any more.
  void drain_all();
  /// For how long a stop may wait for running collectives.
  std::chrono::seconds drain_time();
  /// What decides whether rings are reclaimed. A part of the rings in each stop.
  TendedRings tended_rings();
  /// Reclaims the ring, in the very stop in which `judge` is asked, if it gives grounds. So no ring
  /// goes that woke up. Throws NoSuchRing.
  std::optional<Reclaimed> reclaim_if(std::uint32_t id, const ReclaimJudge& judge);

  /// Whoever starts the gate writes it.
  GateLog& gate_log() { return gate_log_; }

  const ReclaimLog& reclaim_log() const { return reclaim_log_; }

  /// Before start(): who hears of reclaimed rings, on the thread that has reclaimed them.
  void tell_reclaims_to(std::function<void(const Reclaimed&)> tell) {
    reclaim_log_.tell_to(std::move(tell));
  }

  /// Reads the configuration file again and applies what has changed and can change while the
  /// switch runs. Rings that were made while it runs stay. Returns all changes, also those that
  /// wait for a restart. Throws ConfigError, PortError, RingRefused and JournalError; nothing has
  /// changed then. Throws ReloadUnfinished when memory, a device or an lcore fails in the middle.
  std::vector<config::Change> reload();
  /// The same, but nothing changes.
  std::vector<config::Change> rehearse_reload();
  /// Opens ports again whose interface was deleted and made again: for who looks now and then. Jobs
  /// behind them go on. Frames for them are dropped meanwhile, as DropReason::port_closed.
  void replace_ports();
  void trace_on();
  void trace_off();
  /// Of all lcores, oldest first.
  std::vector<frame::TraceRecord> trace();

  /// Writes packets and what becomes of them into a file, one capture at a time. Throws CaptureRuns
  /// and capture::FileError.
  void start_capture(CaptureOrder order);
  /// Ends the capture, if one runs, and waits until its file is whole.
  void stop_capture();
  /// The last capture; nullopt: there was none. Does not stop the lcores.
  std::optional<capture::Status> capture() const;

  /// The children of a ring and their connections.
  std::vector<stage::SenderSnapshot> senders(std::uint32_t id);

  std::vector<LcoreSnapshot> lcores();
  /// The MAC table, in no order. Does not stop the lcores.
  std::vector<Station> stations() const;

  const Tenants& tenants() const { return tenants_; }

  const MemoryPlan& memory_plan() const { return plan_; }

  /// Number of free mbufs.
  std::uint32_t free_mbufs() const;

  std::uint32_t all_mbufs() const { return plan_.mbufs; }

  StopTimes stop_times() const;

 private:
  class Quiesce;
  class RuleSweep;
  using WriterLock = std::lock_guard<std::mutex>; // of one_writer_: no ring comes, changes or goes
  using Ports = std::vector<std::shared_ptr<Port>>; // by place

  /// The state of a ring that its worker has given away.
  struct Withdrawn {
    stage::RingRoom room;
    stage::Worker& worker;
  };

  /// A plan that fits, and which lcore is to work for each ring that it adds.
  struct Reload {
    ReloadPlan plan;
    std::vector<std::size_t> lcores;
  };

  void steer(const ring::RingSet& rings, const Placement& placement,
             void (Port::*give)(const SteeringPlan&)) const;
  void install_rules(const ring::RingSet& rings, const Placement& placement);
  frame::PortCounters all_port_counters(std::uint16_t port) const;
  void check_memory() const;
  std::vector<PortNode> port_nodes() const;
  void make_pool();
  void discard_all();
  void make_lcores();
  std::vector<frame::Trace> empty_traces() const;
  capture::Plan capture_plan(CaptureOrder order) const;
  void copy_to_no_capture();
  lcore::Lcore& worker_of(std::uint16_t ring);
  std::uint16_t index_of(std::uint32_t id) const;
  std::uint16_t ordered_ring(std::uint32_t id, const Principal& principal,
                             const WriterLock& lock) const;
  std::uint32_t most_claims() const;
  RingForecast forecast() const;
  std::unique_ptr<stage::RingRoom> room_for(const ring::Ring& ring, std::size_t lcore);
  void check_may_add(const ring::RingSpec& spec) const;
  void check_id(const ring::RingSpec& spec) const;
  void enter(const ring::RingSpec& spec, std::size_t lcore, stage::RingRoom room,
             const RingCare& care);
  config::Config in_force() const;
  Reload planned_reload(const WantedConfig& wanted);
  void check_opened(const PortPlan& ports, const ReloadPlan& rings) const;
  void check_closed(const PortPlan& ports, const ReloadPlan& rings);
  bool speaks_by(std::uint16_t ring, const ring::RingSpec& as_it_will_be, std::uint16_t port);
  void remember(const ReloadPlan& plan);
  void carry_out(const Reload& reload, const WantedConfig& wanted, NewPorts& ports);
  void open_port(std::uint16_t place, NewPorts& ports);
  void close_port(std::uint16_t place);
  void give_device(std::uint16_t place, std::uint16_t device,
                   std::unique_ptr<lcore::TxPort> queues);
  void take_device(std::uint16_t place);
  void replace_port(std::uint16_t place);
  void change_in_place(const ReloadPlan& plan, const config::Config& wanted);
  void tell_capture(std::uint16_t ring, const ring::RingSpec& spec);
  stage::RingSnapshot snapshot_of(std::uint16_t ring);
  template <typename Visit>
  bool visit_in_parts(const std::shared_ptr<const ring::RingSet>& set, Visit&& visit);
  TendedRing tended_ring(std::uint16_t ring, frame::Instant now);
  void take_out(std::uint16_t ring, std::shared_ptr<const ring::RingSet>& set_without,
                frame::Instant now);
  ring::RingBirth add(const ring::RingSpec& spec, Keeper keeper);
  void withdraw(std::uint16_t ring);
  std::optional<Reclaimed> reclaim(std::uint16_t ring, const ReclaimJudge& judge);
  void tell(const std::optional<Reclaimed>& reclaimed);
  std::optional<std::uint16_t> ring_born(ring::RingBirth birth) const;
  void drop_withdrawn();
  void give(const std::vector<stage::TenantShares>& shares);

  const config::Config config_;        // that it was started with
  std::optional<RingJournal> journal_; // with a state directory
  wire::HashKey hash_key_ = wire::HashKey::random();
  ring::CurrentRings rings_;
  conn::ForeignSessions foreign_sessions_{hash_key_, stage::ways_out_by(bridge_)};
  conn::QueuePairClaims claims_{most_claims(), hash_key_};
  Placement placement_;
  MemoryPlan plan_;
  RingBudget ring_budget_;
  Tenants tenants_;
  PortBudget port_budget_;
  std::vector<EalMemory> memories_; // by lcore: for what it works with
  rte_mempool* pool_ = nullptr;
  ring::Current<Ports> ports_{Ports{}};
  l2::MacTable stations_;
  l2::Bridge bridge_;
  std::optional<lcore::Lcore::Shared> shared_;
  std::vector<std::unique_ptr<lcore::Lcore>> lcores_;
  bool is_running_ = false;
  mutable std::mutex one_capture_;
  std::unique_ptr<capture::Capture> capture_; // the last one
  mutable std::mutex one_question_;
  std::vector<frame::PortCounters> cleared_; // by place: counters at the last clear_port_counters()
  StopTimes stop_times_;
  std::mutex one_writer_;      // of rings_, ports_, in_force_; locked before one_question_
  std::vector<RingCare> care_; // by index; guarded by one_question_, births by both
  bool is_draining_ = false;   // all rings; guarded by one_writer_
  ReclaimLog reclaim_log_;
  GateLog gate_log_;
  ring::RingBirth last_birth_ = 0;                     // guarded by one_writer_
  ring::Current<config::Config> in_force_;             // but for the rings
  std::mutex one_reload_;                              // locked before one_writer_
  std::unique_ptr<Withdrawn> withdrawn_;               // whose frames are not yet dropped
  std::mutex one_reader_;                              // of traces
  std::vector<std::deque<frame::TraceRecord>> traced_; // by lcore: records that were taken from it
};

} // namespace weir::control
