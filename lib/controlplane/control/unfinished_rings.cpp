// SPDX-License-Identifier: BSD-3-Clause
#include "control/unfinished_rings.hpp"

#include "ring/ring.hpp"
#include "ring/sender_name.hpp"

#include <fmt/format.h>

namespace weir::control {
namespace {

std::string unfinished_slots(const TendedRing& ring) {
  std::vector<std::string> missing;
  for (const std::uint16_t child : ring.life.waited_for) {
    missing.push_back(ring::phrase_for(ring.spec, child));
  }
  return fmt::format("{} of its slots waited, the oldest for {}", ring.life.filling,
                     fmt::join(missing, ", "));
}

/// A child's receiver is the rank after its last one.
std::string missing_acknowledgements(const TendedRing& ring) {
  const ring::Ring places(ring.spec);
  std::vector<std::uint16_t> receivers;
  for (const std::uint16_t child : ring.life.unacknowledged) {
    receivers.push_back(ring.spec.successor(places.rank_of(child)));
  }
  return fmt::format("rank {} had not acknowledged results", fmt::join(receivers, ", "));
}

} // namespace

std::vector<TendedRing> busy_of(std::vector<TendedRing> rings) {
  std::erase_if(rings, [](const TendedRing& ring) { return !ring.life.is_busy(); });
  return rings;
}

std::string ids_of(const std::vector<TendedRing>& rings) {
  std::vector<std::uint32_t> ids;
  for (const TendedRing& ring : rings) {
    ids.push_back(ring.spec.id);
  }
  return fmt::format("{}", fmt::join(ids, ", "));
}

std::string cut_off_sentence(const TendedRing& ring) {
  std::vector<std::string> parts;
  if (ring.life.filling != 0) {
    parts.push_back(unfinished_slots(ring));
  }
  if (!ring.life.unacknowledged.empty()) {
    parts.push_back(missing_acknowledgements(ring));
  }
  return fmt::format("ring {}: cut off: {}", ring.spec.id, fmt::join(parts, "; "));
}

} // namespace weir::control
