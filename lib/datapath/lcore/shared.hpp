// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "conn/connection_owners.hpp"
#include "conn/magic_rule.hpp"
#include "l2/bridge.hpp"
#include "region/region_table.hpp"
#include "ring/current_rings.hpp"
#include "stage/loop_probes.hpp"
#include "wire/headers.hpp"

#include <rte_mempool.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace weir::lcore {

/// What all lcores share: read-only between two swaps of the rings, or, for the stations, safe to
/// share.
struct Shared {
  const ring::CurrentRings& rings;
  l2::Bridge& bridge;
  std::vector<std::uint32_t> max_frame_bytes; // by port
  conn::MagicRule::Settings magic_rule;
  rte_mempool* pool = nullptr; // the ports' mempool; nullptr: do not check whether it is empty
  std::vector<wire::EtherType> outer_tags; // by port; those that it lacks: 802.1Q
  stage::SentProbes probes = {};
  conn::ConnectionOwners* owners = nullptr; // nullptr: there is one worker
  std::optional<region::Address> regions = {};

  wire::EtherType outer_tag_of(std::uint16_t port) const {
    return port < outer_tags.size() ? outer_tags[port] : wire::EtherType::vlan;
  }
};

} // namespace weir::lcore
