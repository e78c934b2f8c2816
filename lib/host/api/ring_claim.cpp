// SPDX-License-Identifier: BSD-3-Clause
#include "host/api/ring_claim.hpp"

#include "host/base/error.hpp"
#include "host/base/per_process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

namespace weir::host {

/// What the groups of this process have.
struct RingRegister {
  std::mutex mutex;
  std::map<std::pair<wire::IpAddress, std::uint32_t>, RingHolder> taken; // guarded by the mutex
};

namespace {

Error ring_is_taken(const wire::IpAddress& own, std::uint16_t rank, std::uint32_t ring) {
  return {ErrorCode::mismatch, rank,
          fmt::format("rank {}: ring {}: found another group of this process, which has it at {} "
                      "and would end; allowed: a ring for each group, by other ids (rings, --ring, "
                      "WEIR_RINGS), or from a switch that makes them (switch_address, WEIR_SWITCH)",
                      rank, ring, wire::to_string(own))};
}

Error rank_is_here(const wire::IpAddress& own, const RingHolder& first, const RingHolder& second,
                   std::uint32_t ring) {
  return {ErrorCode::mismatch, second.rank,
          fmt::format("ring {}: found ranks {} and {} of one group in one process at one address, "
                      "{}; allowed: an address for each rank (ip, --ip)",
                      ring, std::min(first.rank, second.rank), std::max(first.rank, second.rank),
                      wire::to_string(own))};
}

} // namespace

RingClaim::RingClaim(const wire::IpAddress& own, const RingHolder& holder,
                     std::vector<std::uint32_t> rings)
    : register_(of_this_process<RingRegister>()), own_(own), rings_(std::move(rings)) {
  const std::lock_guard lock(register_.mutex);
  for (const std::uint32_t ring : rings_) {
    const auto taken = register_.taken.find({own_, ring});
    if (taken != register_.taken.end()) {
      const RingHolder& first = taken->second;
      throw first.nonce == holder.nonce ? rank_is_here(own_, first, holder, ring)
                                        : ring_is_taken(own_, holder.rank, ring);
    }
  }
  for (const std::uint32_t ring : rings_) {
    register_.taken.emplace(std::pair(own_, ring), holder);
  }
}

void RingClaim::release() {
  if (!birthplace_.is_here()) { // the register is the parent's
    return;
  }
  const std::lock_guard lock(register_.mutex);
  if (std::exchange(is_held_, false)) {
    for (const std::uint32_t ring : rings_) {
      register_.taken.erase({own_, ring});
    }
  }
}

} // namespace weir::host
