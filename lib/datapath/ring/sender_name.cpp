// SPDX-License-Identifier: BSD-3-Clause
#include "ring/sender_name.hpp"

namespace weir::ring {
namespace {

bool is_rank(const RingSpec& ring, std::uint16_t sender) {
  return ring.children.empty() || ring.children[sender].kind == ChildKind::rank;
}

} // namespace

bool is_parent(const RingSpec& ring, std::uint16_t sender) {
  return ring.parent && sender == ring.children.size();
}

std::string name_of(const RingSpec& ring, std::uint16_t sender) {
  if (is_parent(ring, sender)) {
    return "parent";
  }
  if (ring.children.empty()) {
    return std::to_string(sender);
  }
  const RankRange& ranks = ring.children[sender].ranks;
  const std::string first = std::to_string(ranks.first);
  return is_rank(ring, sender) ? first : first + "-" + std::to_string(ranks.last());
}

std::string phrase_for(const RingSpec& ring, std::uint16_t sender) {
  if (is_parent(ring, sender)) {
    return "the switch above";
  }
  return (is_rank(ring, sender) ? "rank " : "ranks ") + name_of(ring, sender);
}

std::string switch_name_of(const RingSpec& ring, std::uint16_t sender) {
  if (is_parent(ring, sender)) {
    return ring.parent->name;
  }
  return is_rank(ring, sender) ? std::string() : ring.children[sender].name;
}

} // namespace weir::ring
