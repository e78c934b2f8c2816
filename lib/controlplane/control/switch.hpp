// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/captures.hpp"
#include "control/chassis.hpp"
#include "control/gate_log.hpp"
#include "control/inspector.hpp"
#include "control/loops.hpp"
#include "control/operator_admin.hpp"
#include "control/port_admin.hpp"
#include "control/port_counts.hpp"
#include "control/region_admin.hpp"
#include "control/reload.hpp"
#include "control/ring_admin.hpp"
#include "control/traces.hpp"

#include <optional>

namespace weir::control {

/// A switch, from its start to its stop, and its parts: who asks or changes something of it takes
/// the part that knows about it. EAL is up before it is made, with the lcores of
/// eal_lcores(placement).
///
/// Two locks guard what control changes, and the types that stand for them (WriterLock,
/// lcore::Quiesce) are arguments of what needs them: to read takes one of the two, to change both.
/// lcore::LockRank has the order of all locks.
class Switch {
 public:
  /// Reads the journal and checks memory, then probes ports. Throws JournalError, MemoryError,
  /// PortError.
  explicit Switch(const config::Config& config);
  ~Switch();
  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;

  void start();
  /// First receiving ends, then frames under way leave, then frames that rings hold are released.
  /// Call it when no other thread can ask a question.
  void stop();
  /// After stop(): frees the mbufs that drivers hold. The ports' statistics are then gone.
  void close_ports();

  const Inspector& inspector() const { return inspector_; }

  RingAdmin& rings() { return rings_; }

  const RingAdmin& rings() const { return rings_; }

  RegionAdmin& regions() { return regions_; }

  const RegionAdmin& regions() const { return regions_; }

  OperatorAdmin& operators() { return operators_; }

  const OperatorAdmin& operators() const { return operators_; }

  PortAdmin& ports() { return ports_; }

  Reload& reload() { return reload_; }

  Loops& loops() { return loops_; }

  Captures& captures() { return captures_; }

  Traces& traces() { return traces_; }

  /// Whoever starts the gate writes it.
  GateLog& gate_log() { return gate_log_; }

 private:
  Switch(const config::Config& config, std::optional<RingJournal> journal);

  void discard_all();

  Chassis chassis_;
  PortCounts port_counts_;
  Captures captures_;
  Traces traces_;
  OperatorAdmin operators_; // before the rings, some of whose operators go with them
  RingAdmin rings_;
  RegionAdmin regions_;
  PortAdmin ports_;
  Reload reload_;
  Loops loops_;
  Inspector inspector_;
  GateLog gate_log_;
  bool is_running_ = false;
};

} // namespace weir::control
