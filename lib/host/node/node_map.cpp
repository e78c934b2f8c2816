// SPDX-License-Identifier: BSD-3-Clause
#include "host/node/node_map.hpp"

#include "host/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir::host {
namespace {

bool have_one_nic(const Resident& one, const Resident& other) {
  return one.residence.is_known() && one.residence.nic == other.residence.nic && one.ip == other.ip;
}

Error of_two_users(std::uint16_t leader, std::uint16_t rank, std::span<const Resident> residents) {
  return {ErrorCode::mismatch, rank,
          fmt::format("rank {} shares the NIC at {} with rank {}: found user {} and user {}; "
                      "allowed: one user for all ranks of a NIC",
                      rank, wire::to_string(residents[rank].ip), leader,
                      residents[rank].residence.user, residents[leader].residence.user)};
}

} // namespace

NodeMap::NodeMap(std::span<const Resident> residents) {
  for (std::uint16_t rank = 0; rank < residents.size(); ++rank) {
    const auto node = std::ranges::find_if(ranks_, [&](const std::vector<std::uint16_t>& ranks) {
      return have_one_nic(residents[ranks.front()], residents[rank]);
    });
    node_of_.push_back(static_cast<std::uint16_t>(node - ranks_.begin()));
    if (node == ranks_.end()) {
      ranks_.push_back({rank});
    } else if (const std::uint16_t leader = node->front();
               residents[leader].residence.user != residents[rank].residence.user) {
      throw of_two_users(leader, rank, residents);
    } else {
      node->push_back(rank);
    }
  }
}

std::uint16_t NodeMap::place_of(std::uint16_t rank) const {
  const std::vector<std::uint16_t>& ranks = ranks_of(node_of(rank));
  return static_cast<std::uint16_t>(std::ranges::lower_bound(ranks, rank) - ranks.begin());
}

} // namespace weir::host
