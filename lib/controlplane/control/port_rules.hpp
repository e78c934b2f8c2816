// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// How the rules of steered ports (docs/operating.md) follow the rings.

#include "control/chassis.hpp"

namespace weir::control {

/// Before these rings are in force, so that none of their packets comes by the other way.
void install_rules(const Ports& ports, const ring::RingSet& rings, const Placement& placement);

/// Where rings come into force or go. At its end it removes the rules that no ring in force needs,
/// also those of a ring that did not come into force in the end.
class RuleSweep {
 public:
  /// Both outlive it.
  RuleSweep(const Chassis& chassis, const WriterLock& lock) : chassis_(chassis), lock_(lock) {}

  ~RuleSweep();
  RuleSweep(const RuleSweep&) = delete;
  RuleSweep& operator=(const RuleSweep&) = delete;

 private:
  const Chassis& chassis_;
  const WriterLock& lock_;
};

} // namespace weir::control
