// SPDX-License-Identifier: BSD-3-Clause
#include "conn/ring_directory.hpp"

#include <bit>
#include <limits>
#include <stdexcept>
#include <utility>

namespace weir::conn {
namespace {

std::uint64_t mix(const wire::IpAddress& address, std::uint64_t seed) {
  const auto [high, low] = address.words();
  // Multiply-xorshift: addresses of one subnet differ in few low bits, which must reach every
  // bucket bit.
  std::uint64_t hash = (seed ^ high) * 0x9e3779b97f4a7c15;
  hash = (hash ^ (hash >> 32) ^ low) * 0xd6e8feb86659fd93;
  return hash ^ (hash >> 32);
}

} // namespace

RingDirectory::RingDirectory(std::vector<RingSpec> rings) : rings_(std::move(rings)) {
  std::size_t neighbours = 0;
  for (const RingSpec& ring : rings_) {
    neighbours += ring.members.size();
  }
  if (neighbours >= std::numeric_limits<std::uint16_t>::max()) {
    throw std::invalid_argument("the rings have more than 65534 members in all");
  }
  cells_.resize(std::bit_ceil(2 * neighbours + 2));
  pairs_.reserve(neighbours);
  for (std::uint16_t ring = 0; ring < rings_.size(); ++ring) {
    if (!ring_by_id_.emplace(rings_[ring].id, ring).second) {
      throw std::invalid_argument("two rings have the same id");
    }
    ring_groups_.push_back(ring);
    add_neighbours(ring);
  }
}

std::optional<std::uint16_t> RingDirectory::ring_with_id(std::uint32_t id) const {
  const auto found = ring_by_id_.find(id);
  return found == ring_by_id_.end() ? std::nullopt : std::optional(found->second);
}

std::uint16_t RingDirectory::pair_of(const wire::IpAddress& source,
                                     const wire::IpAddress& destination) const {
  return cells_[find_cell(source, destination)];
}

std::size_t RingDirectory::find_cell(const wire::IpAddress& source,
                                     const wire::IpAddress& destination) const {
  std::size_t cell = mix(destination, mix(source, 0)) & (cells_.size() - 1);
  const auto holds_another = [&](std::uint16_t number) {
    return number != 0 &&
           (pairs_[number - 1u].source != source || pairs_[number - 1u].destination != destination);
  };
  while (holds_another(cells_[cell])) {
    cell = (cell + 1) & (cells_.size() - 1);
  }
  return cell;
}

void RingDirectory::add_neighbours(std::uint16_t ring) {
  const RingSpec& spec = rings_[ring];
  for (std::uint16_t rank = 0; rank < spec.world(); ++rank) {
    const wire::IpAddress& source = spec.members[rank].ip;
    const wire::IpAddress& destination = spec.members[spec.successor(rank)].ip;
    std::uint16_t& cell = cells_[find_cell(source, destination)];
    if (cell == 0) {
      pairs_.push_back({source, destination, ring_groups_[ring]});
      cell = static_cast<std::uint16_t>(pairs_.size());
    } else {
      merge_groups(pairs_[cell - 1u].group, ring_groups_[ring]);
    }
  }
}

void RingDirectory::merge_groups(std::uint16_t keep, std::uint16_t give_up) {
  for (std::uint16_t& group : ring_groups_) {
    group = group == give_up ? keep : group;
  }
  for (Pair& pair : pairs_) {
    pair.group = pair.group == give_up ? keep : pair.group;
  }
}

} // namespace weir::conn
