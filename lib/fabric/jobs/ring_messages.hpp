// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Trees as the switches' messages have them.

#include "jobs/site.hpp"
#include "placement/place.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <weir/v1/fabric_records.pb.h>
#include <weir/v1/switch.pb.h>

namespace weir::jobs {

/// The ring's members' ports, children and parent, as this switch has them.
void write_part(const Site& site, const placement::TreeSwitch& part, v1::Ring& ring);

/// A switch or a port of a ring's is not in the topology. what() names it.
class UnknownPart : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What write_part() has written at this switch. Throws UnknownPart.
placement::TreeSwitch read_part(const Site& site, SwitchIndex at, const v1::Ring& ring);

/// How many children the switch has: those that are told, or all members.
std::uint64_t children_of(const v1::Ring& ring);

/// Rings of equal members and digests give equal bits.
std::string fold_shape_of(const v1::JobRecord& record);

/// "ring 2147483648 over spine0: [[0,1],[2,3]]"
std::string explain_trees(const v1::JobRecord& record);

} // namespace weir::jobs
