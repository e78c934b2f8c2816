// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coverage.hpp"
#include "packet.hpp"
#include "scenario.hpp"
#include "stage/inline_switch.hpp"
#include "wire/headers.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace weir::fabric {

/// One ring's incarnations, seen from outside: which hellos came to the switch. Throws Violation
/// I11 when an incarnation begins twice, or when anything but all ranks' hellos or an operator
/// begins, ends or empties it, and when one begins in a ring that drains.
class IncarnationWatch {
 public:
  /// `part` is the switch's in the ring.
  IncarnationWatch(const RingPlan& plan, const RingTree::Part& part, std::uint16_t ring,
                   Coverage& coverage)
      : spec_(plan.spec), part_(part), ring_(ring), coverage_(coverage) {}

  /// Call them around InlineSwitch::accept and take_over of any packet.
  void before(const Packet& packet, const stage::InlineSwitch& engine);
  void after(const stage::InlineSwitch& engine);

  /// After a reset, a withdrawal or a replacement of the switch: takes the present state as
  /// correct.
  void operator_acted(const stage::InlineSwitch& engine);

  /// The ring drains: the present incarnation is the last one.
  void expect_no_other() { is_last_ = true; }

  /// Another switch is in its place, which does not drain.
  void expect_any() { is_last_ = false; }

 private:
  using Name = std::pair<std::uint32_t, std::uint32_t>; // epoch, nonce

  /// The state that the switch shows.
  struct Sight {
    std::optional<Name> incarnation;
    std::uint64_t flushes = 0;
    std::uint32_t session = 0;
    std::uint32_t parent_session = 0;

    bool operator==(const Sight&) const = default;
  };

  Sight look_at(const stage::InlineSwitch& engine) const;
  void note(const wire::InaHeader& hello);
  bool has_all_hellos(const Name& name) const;

  const ring::RingSpec& spec_;
  const RingTree::Part& part_;
  std::uint16_t ring_;
  Coverage& coverage_;
  std::map<Name, std::uint64_t> hellos_; // whose have come since the operator acted: see note()
  std::set<std::uint32_t> begun_;        // nonces that have begun since then
  Sight before_;
  bool is_last_ = false;
};

} // namespace weir::fabric
