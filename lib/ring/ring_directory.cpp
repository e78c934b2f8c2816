// SPDX-License-Identifier: BSD-3-Clause
#include "ring/ring_directory.hpp"

#include <bit>
#include <map>
#include <stdexcept>
#include <utility>

namespace weir::ring {
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
  std::size_t members = 0;
  for (const RingSpec& ring : rings_) {
    members += ring.members.size();
  }
  if (members > kMostMembers) {
    throw std::invalid_argument("the rings have more than 32767 members in all");
  }
  check_ports();
  cells_.resize(std::bit_ceil(4 * members + 2));
  pairs_.reserve(2 * members);
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
  std::vector<std::uint16_t>& sender_pairs = sender_pairs_.emplace_back();
  for (std::uint16_t rank = 0; rank < spec.world(); ++rank) {
    const Member& member = spec.members[rank];
    const Member& successor = spec.members[spec.successor(rank)];
    const std::uint16_t forward = add_pair(ring, member, successor);
    const std::uint16_t reverse = add_pair(ring, successor, member);
    pairs_[forward - 1u].reverse = reverse;
    pairs_[reverse - 1u].reverse = forward;
    pairs_[forward - 1u].senders.push_back({ring, rank});
    sender_pairs.push_back(forward);
  }
}

std::uint16_t RingDirectory::add_pair(std::uint16_t ring, const Member& source,
                                      const Member& destination) {
  std::uint16_t& cell = cells_[find_cell(source.ip, destination.ip)];
  if (cell == 0) {
    pairs_.push_back({source.ip, destination.ip, ring_groups_[ring], 0, {}, {}});
    cell = static_cast<std::uint16_t>(pairs_.size());
  } else {
    merge_groups(pairs_[cell - 1u].group, ring_groups_[ring]);
  }
  if (source.port) {
    pairs_[cell - 1u].source_port = source.port;
  }
  return cell;
}

/// Everything to an address leaves by one port, so no address can have two.
void RingDirectory::check_ports() const {
  std::map<wire::IpAddress, std::uint16_t> ports;
  for (const RingSpec& ring : rings_) {
    for (const Member& member : ring.members) {
      if (member.port && ports.emplace(member.ip, *member.port).first->second != *member.port) {
        throw std::invalid_argument("two rings bind " + wire::to_string(member.ip) +
                                    " to different ports");
      }
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

} // namespace weir::ring
