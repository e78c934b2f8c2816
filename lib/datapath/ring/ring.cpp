// SPDX-License-Identifier: BSD-3-Clause
#include "ring/ring.hpp"

#include <stdexcept>
#include <utility>

namespace weir::ring {
namespace {

std::vector<Child> one_for_each_rank(const RingSpec& spec) {
  std::vector<Child> children;
  for (std::uint16_t rank = 0; rank < spec.world(); ++rank) {
    children.push_back({{rank, 1}, spec.members[rank].port});
  }
  return children;
}

void check(const RingSpec& spec, const std::vector<Child>& children, bool has_parent) {
  std::size_t ranks = 0;
  for (std::size_t i = 0; i < children.size(); ++i) {
    const RankRange& own = children[i].ranks;
    const bool follows = i == 0 || own.first == children[i - 1].ranks.last() + 1;
    if (own.count == 0 || own.first + own.count > spec.world() || !follows) {
      throw std::invalid_argument("a ring's children must cover consecutive ranks of its world");
    }
    ranks += own.count;
  }
  if (!has_parent && ranks != spec.world()) {
    throw std::invalid_argument("the children of a ring without a parent must cover its world");
  }
}

} // namespace

Ring::Ring(const RingSpec& spec) : Ring(spec, one_for_each_rank(spec), std::nullopt) {}

Ring::Ring(RingSpec spec, std::vector<Child> children, std::optional<Parent> parent)
    : spec_(std::move(spec)), children_(std::move(children)), parent_(parent),
      child_of_rank_(spec_.world(), this->children()) {
  check(spec_, children_, parent_.has_value());
  for (std::uint16_t number = 0; number < this->children(); ++number) {
    const RankRange& own = children_[number].ranks;
    for (std::uint16_t i = 0; i < own.count; ++i) {
      child_of_rank_[own.first + i] = number;
    }
  }
}

} // namespace weir::ring
