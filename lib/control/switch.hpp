// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"
#include "control/memory.hpp"
#include "control/placement.hpp"
#include "control/port.hpp"
#include "lcore/lcore.hpp"
#include "stage/snapshot.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

struct rte_mempool;

namespace weir::control {

/// The configuration does not fit the memory there is; what() says what it needs and what there is.
class MemoryError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An lcore did not come to a stop between two rounds in time.
class LcoreError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An lcore at one moment.
struct LcoreSnapshot {
  unsigned id = 0;
  std::string roles; // "rx,worker"
  std::size_t rings = 0;
  std::uint64_t held = 0; // frames
  frame::FrameCounters frames;
  lcore::RoundCounters rounds;
};

/// Whom the MAC table knows.
struct Station {
  wire::MacAddress mac;
  std::uint16_t port = 0;
  std::uint64_t age_ms = 0; // since its last frame
  std::uint64_t pins = 0;   // by rings' members
};

/// How often all lcores stood still, and for how long; nanoseconds, as the asking thread saw it.
struct StopTimes {
  std::uint64_t stops = 0;
  frame::Histogram gathering; // from the first lcore that is told until the last one stands
  frame::Histogram standing;  // from then until they are let go
  bool kept_cpu = false;      // the asking thread, the last time
};

/// The switch as the prompt and telemetry know it: ports, lcores and what they share. EAL is up
/// before it is made, with the lcores of eal_lcores(placement).
///
/// Port counters are read while the lcores run. What has to be one consistent picture is copied
/// while all of them stand still for some microseconds, once for each question, but for lists of
/// connections; whatever takes longer comes afterwards. Questions may come from several threads.
class Switch {
 public:
  /// Checks memory first, then probes ports. Throws MemoryError, PortError.
  explicit Switch(const config::Config& config);
  ~Switch();
  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;

  void start();
  /// Receiving ends first, then what is under way leaves, then what rings hold is given up. Not
  /// while another thread may ask something.
  void stop();
  /// After stop(): gives back the mbufs that drivers keep; the ports' statistics end.
  void close_ports();

  const config::Config& config() const { return config_; }

  std::vector<Port>& ports() { return ports_; }

  const std::vector<ring::RingSpec>& rings() const { return config_.rings; }

  /// A withdrawn one too.
  std::optional<std::uint16_t> ring_with_id(std::uint32_t id) const;

  /// Since the last clear_port_counters(). Nobody stands still for it.
  frame::PortCounters port_counters(std::uint16_t port) const;
  void clear_port_counters(std::uint16_t port);
  stage::Accounting accounting();
  std::vector<stage::RingSnapshot> ring_snapshots();
  stage::RingSnapshot ring_snapshot(std::uint16_t ring);
  std::vector<slot::StuckSlot> stuck_slots(std::uint16_t ring, std::size_t limit);
  /// Part by part, with a stop for each: a connection that becomes or ceases to be a ring's
  /// meanwhile may come twice or not at all.
  std::vector<stage::ConnectionSnapshot> connections();
  void reset_ring(std::uint16_t ring);
  void withdraw_ring(std::uint16_t ring);
  void trace_on();
  void trace_off();
  /// Of all lcores, oldest first.
  std::vector<frame::TraceRecord> trace();

  std::vector<LcoreSnapshot> lcores();
  /// Of the MAC table, in no order. Nobody stands still for it.
  std::vector<Station> stations() const;

  const MemoryPlan& memory_plan() const { return plan_; }

  /// mbufs that are in nobody's hands.
  std::uint32_t free_mbufs() const;

  std::uint32_t all_mbufs() const { return plan_.mbufs; }

  StopTimes stop_times() const;

 private:
  class Quiesce;

  frame::PortCounters all_port_counters(std::uint16_t port) const;
  void check_memory() const;
  void make_lcores();
  std::vector<frame::Trace> empty_traces() const;
  lcore::Lcore& worker_of(std::uint16_t ring);

  config::Config config_;
  ring::CurrentRings rings_;
  conn::HashKey hash_key_ = conn::HashKey::random();
  conn::ForeignSessions foreign_sessions_{hash_key_};
  Placement placement_;
  MemoryPlan plan_;
  EalMemory memory_;
  rte_mempool* pool_ = nullptr;
  std::vector<Port> ports_;
  l2::MacTable stations_;
  l2::Bridge bridge_;
  std::optional<lcore::Lcore::Shared> shared_;
  std::vector<std::unique_ptr<lcore::Lcore>> lcores_;
  bool is_running_ = false;
  mutable std::mutex one_question_;
  std::vector<frame::PortCounters> cleared_; // by port: where its counters began
  StopTimes stop_times_;
  std::mutex one_writer_;                              // of rings_
  std::mutex one_reader_;                              // of traces
  std::vector<std::deque<frame::TraceRecord>> traced_; // by lcore: what it no longer has itself
};

} // namespace weir::control
