// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "control/port_plan.hpp"
#include "control/reload_plan.hpp"
#include "control/writer_lock.hpp"
#include "lcore/lock_order.hpp"

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace weir::control {

struct Chassis;
class Captures;
class PortAdmin;
class RingAdmin;

/// A reload failed between its first change and its last. what() says why, and what of the file is
/// not in force.
class ReloadUnfinished : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Reads the configuration file again and applies what has changed and can change while the switch
/// runs. Rings that were made while it runs stay. Any thread may use it.
class Reload {
 public:
  /// What it works with. All outlive it.
  struct Parts {
    Chassis& chassis;
    const Captures& captures;
    RingAdmin& rings;
    PortAdmin& ports;
  };

  explicit Reload(const Parts& parts);

  /// Returns all changes, also those that wait for a restart. Throws ConfigError, PortError,
  /// RingRefused and JournalError; nothing has changed then. Throws ReloadUnfinished when memory, a
  /// device or an lcore fails in the middle.
  std::vector<config::Change> apply();
  /// The same, but nothing changes.
  std::vector<config::Change> rehearse();

  /// The one that it reads.
  const std::string& file() const;

 private:
  using Mutex = lcore::RankedMutex<lcore::LockRank::reload>;

  class NewPorts;

  /// A plan that fits, and which lcore is to work for each ring that it adds.
  struct Fitted {
    ReloadPlan plan;
    std::vector<std::size_t> lcores;
  };

  WantedConfig read_file() const;
  Fitted plan_for(const WantedConfig& wanted, const WriterLock& lock) const;
  void check_opened(const PortPlan& ports, const ReloadPlan& rings, const WriterLock& lock) const;
  void check_closed(const PortPlan& ports, const ReloadPlan& rings, const WriterLock& lock) const;
  void check_mtu_of_regions(const PortPlan& ports) const;
  void check_regions_of(std::uint16_t place, const std::string& name,
                        const lcore::Quiesce& quiesced) const;
  void remember(const ReloadPlan& plan, const WriterLock& lock);
  void carry_out(const Fitted& fitted, const WantedConfig& wanted, NewPorts& ports,
                 const WriterLock& lock);
  void change_in_place(const ReloadPlan& plan, const config::Config& wanted,
                       const WriterLock& lock);
  void change_stations(const config::Config& before, const config::Config& now);

  Chassis& chassis_;
  const Captures& captures_;
  RingAdmin& rings_;
  PortAdmin& ports_;
  const PortBudget port_budget_;
  Mutex one_reload_;
};

} // namespace weir::control
