// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config/config.hpp"
#include "ring/ring_set.hpp"
#include "ring/ring_spec.hpp"

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace weir::control {

/// A caller may not do this. what() says who he is and what he may do.
class NotAllowed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Who gives an order: an operator, who may do all, or a tenant, who may order what becomes of its
/// own rings.
struct Principal {
  std::string tenant; // its name; empty: an operator

  bool is_operator() const { return tenant.empty(); }

  /// Throws NotAllowed unless he may. A ring's id means another ring as soon as the lock is
  /// released under which it was looked up: so this is asked where the order is carried out.
  void check_may_order(const ring::RingSpec& ring) const;

  /// Throws NotAllowed unless he may make the ring beside those that are present. Switches above
  /// and below, and the ports that lead to them, are the operators': by such a port comes what
  /// counts for several ranks at once. `ports` by place.
  void check_may_make(const ring::RingSpec& ring, const ring::RingSet& present,
                      const std::vector<config::PortConfig>& ports) const;

  /// A member's port, if it has one. `where`: "members[1].port", for the error.
  struct NamedPort {
    std::string where;
    std::optional<std::uint16_t> place;
  };

  /// Throws NotAllowed unless he may name the port of one of these places. A port with `bridge: no`
  /// leads to a switch, whether or not a ring uses it.
  void check_may_name(const NamedPort& port, const ring::RingSet& present,
                      const std::vector<config::PortConfig>& ports) const;
};

} // namespace weir::control
