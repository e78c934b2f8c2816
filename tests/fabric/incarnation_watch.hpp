// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coverage.hpp"
#include "packet.hpp"
#include "scenario.hpp"
#include "stage/inline_switch.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace weir::fabric {

/// An outsider's view of one ring's incarnations: which hellos came to the switch. Throws Violation
/// I11 when an incarnation begins, ends or is emptied by anything but all ranks' hellos or an
/// operator, or when it begins twice.
class IncarnationWatch {
 public:
  IncarnationWatch(const ring::RingSpec& spec, std::uint16_t ring, Coverage& coverage)
      : spec_(spec), ring_(ring), coverage_(coverage) {}

  /// Around InlineSwitch::accept of any packet.
  void before(const Packet& packet, const stage::InlineSwitch& engine);
  void after(const stage::InlineSwitch& engine);

  /// A reset, a withdrawal or another switch: what is now is as it should be.
  void operator_acted(const stage::InlineSwitch& engine);

 private:
  using Name = std::pair<std::uint32_t, std::uint32_t>; // epoch, nonce

  /// What the switch shows.
  struct Sight {
    std::optional<Name> incarnation;
    std::uint64_t flushes = 0;

    bool operator==(const Sight&) const = default;
  };

  Sight look_at(const stage::InlineSwitch& engine) const;
  bool has_all_hellos(const Name& name) const;

  const ring::RingSpec& spec_;
  std::uint16_t ring_;
  Coverage& coverage_;
  std::map<Name, std::uint64_t> hellos_; // ranks that came since the operator acted
  std::set<std::uint32_t> begun_;        // nonces, likewise
  Sight before_;
};

} // namespace weir::fabric
