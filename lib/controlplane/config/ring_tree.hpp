// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// A ring's place in a tree of switches (docs/protocol.md §11): which children this switch has, and
/// which parent.

#include "config/port_places.hpp"
#include "ring/ring_spec.hpp"
#include "yaml/reader.hpp"

#include <string>

namespace weir::config {

/// Reads `children` and `parent` of a ring, at `node`, whose members were read. Throws ConfigError
/// for children that are no part of a tree with these ranks.
void read_tree(const yaml::Reader& node, const PortPlaces& ports, ring::RingSpec& ring);

/// Children that are all ranks are the members, as they are without `children`: two files that say
/// the same give the same ring.
void forget_usual_children(ring::RingSpec& ring);

/// The children's ranks as a change names them: "0 1 [2, 3]". kNothing if each rank is a child.
std::string children_in_words(const ring::RingSpec& ring);

} // namespace weir::config
